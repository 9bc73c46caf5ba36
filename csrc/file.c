/* Replacing a file: the new one is written beside it under a name of its own, its bytes are forced to
 * the disk, then it is renamed and the directory forced to the disk. At any moment `path` names all of
 * the old file or all of the new one. A failed call removes what it wrote; a process killed halfway
 * leaves a file path.tmp-... behind that nobody reads. */
#if !defined(_WIN32)
#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64
#endif
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mem.h"

#if defined(_WIN32)
#include <windows.h>
#include <io.h>
#else
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#endif

static rpo_status fail_io(rpo_error *err, const char *what, const char *path, int number) {
  const char *reason = "";
  switch (number) {
    case ENOENT: reason = ": no such file or directory"; break;
    case EACCES: reason = ": permission denied"; break;
    case EISDIR: reason = ": it is a directory"; break;
#ifdef ELOOP
    case ELOOP: reason = ": too many symbolic links"; break;
#endif
#ifdef ENAMETOOLONG
    case ENAMETOOLONG: reason = ": the name is too long"; break;
#endif
    case EFBIG: reason = ": larger than files may be"; break;
#ifdef ENOSPC
    case ENOSPC: reason = ": no space left on the device"; break;
#endif
#ifdef EROFS
    case EROFS: reason = ": the file system is read-only"; break;
#endif
    default: break;
  }
  return rpo_fail(err, RPO_EIO, "cannot %s %s%s", what, path, reason);
}

/* ---- Reading ---- */

static rpo_status read_on(FILE *file, const char *path, int64_t promised, rpo_bytes *out,
                          rpo_error *err) {
  int64_t room = 1 << 16;
  for (;;) {
    room = room < promised ? room : promised;
    char *const larger = rpo_grow(out->data, out->bytes, room, 1);
    if (larger == NULL) return rpo_fail_memory(err, "the model");
    out->data = larger;
    out->bytes += (int64_t)fread(larger + out->bytes, 1, (size_t)(room - out->bytes), file);
    if (ferror(file)) return fail_io(err, "read all of", path, errno);
    if (out->bytes < room) return RPO_OK; /* shorter than it says */
    if (room == promised) break;
    room *= 2;
  }
  if (fgetc(file) != EOF) {
    return rpo_fail(err, RPO_EFORMAT, "damaged model: longer than the %lld bytes in its header",
                    (long long)promised);
  }
  return RPO_OK;
}

rpo_status rpo_file_read(const char *path, rpo_length_fn length, rpo_bytes *out, rpo_error *err) {
  rpo_bytes b = {NULL, 0, 0};
  int64_t promised = 0;
  rpo_status status;
  FILE *const file = fopen(path, "rb");
  if (file == NULL) return fail_io(err, "read", path, errno);
  b.data = rpo_new(RPO_FILE_START, 1);
  if (b.data == NULL) {
    status = rpo_fail_memory(err, "the model");
    goto done;
  }
  b.bytes = (int64_t)fread(b.data, 1, RPO_FILE_START, file);
  if (ferror(file)) {
    status = fail_io(err, "read", path, errno);
    goto done;
  }
  RPO_GOTO(length(b.data, b.bytes, &promised, err));
  if (promised > b.bytes) RPO_GOTO(read_on(file, path, promised, &b, err));
  *out = b;
  b.data = NULL;
done:
  rpo_delete(b.data);
  (void)fclose(file);
  return status;
}

void rpo_bytes_release(rpo_bytes *b) {
  if (!b->mapped) rpo_delete(b->data);
#if !defined(_WIN32)
  if (b->mapped) (void)munmap(b->data, (size_t)b->bytes);
#endif
  b->data = NULL;
}

#if defined(_WIN32)

rpo_status rpo_file_map(const char *path, rpo_length_fn length, rpo_bytes *out, rpo_error *err) {
  return rpo_file_read(path, length, out, err);
}

#else

rpo_status rpo_file_map(const char *path, rpo_length_fn length, rpo_bytes *out, rpo_error *err) {
  struct stat about;
  int64_t promised;
  int const file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail_io(err, "read", path, errno);
  int const regular = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  int const fits = regular && about.st_size > 0 && (uint64_t)about.st_size < SIZE_MAX / 2;
  void *const data =
      fits ? mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
  (void)close(file);
  if (data == MAP_FAILED) return rpo_file_read(path, length, out, err);
  rpo_bytes b = {data, (int64_t)about.st_size, 1};
  int64_t const have = b.bytes < RPO_FILE_START ? b.bytes : RPO_FILE_START;
  rpo_status const status = length(data, have, &promised, err);
  if (status == RPO_OK) {
    *out = b;
  } else {
    rpo_bytes_release(&b);
  }
  return status;
}

#endif

/* ---- Writing: what differs between systems ---- */

#if defined(_WIN32)

typedef FILE *handle;
static const handle no_file = NULL;

static int is_special(const char *path) {
  (void)path;
  return 0;
}

static handle make_beside(const char *path, char *name, int64_t room) {
  for (unsigned n = 0; n < 1000; n++) {
    if (snprintf(name, (size_t)room, "%s.tmp-%lu-%u", path, (unsigned long)GetCurrentProcessId(),
                 n) >= room) {
      errno = ENOENT;
      return no_file;
    }
    int const file = _open(name, 0x8501 /* write, create, exclusive, binary */, 0600);
    if (file >= 0) return _fdopen(file, "wb");
    if (errno != EEXIST) return no_file;
  }
  return no_file;
}

static handle open_special(const char *path) { return fopen(path, "wb"); }

static int put_bytes(handle file, const char *data, int64_t bytes) {
  return fwrite(data, 1, (size_t)bytes, file) == (size_t)bytes;
}

static int finish(handle file, int sync) {
  int const flushed = fflush(file) == 0 && (!sync || _commit(_fileno(file)) == 0);
  return (fclose(file) == 0) & flushed;
}

static int replace(const char *name, const char *path) {
  return MoveFileExA(name, path, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
}

#else

#define MOST_AT_ONCE ((int64_t)1 << 30) /* of a write: some systems take no more than 2^31 */

#define MOST_LINKS 40 /* behind one another, as Linux has it */

typedef int handle;
static const handle no_file = -1;

/* What cannot be replaced by a file: pipes, devices. */
static int is_special(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

/* A new file beside path, with the permissions of the one it is to replace. Names are tried in turn. */
static handle make_beside(const char *path, char *name, int64_t room) {
  struct stat about;
  for (unsigned n = 0; n < 100000; n++) {
    if (snprintf(name, (size_t)room, "%s.tmp-%ld-%u", path, (long)getpid(), n) >= room) {
      errno = ENOENT;
      return no_file;
    }
    int const file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) {
      if (stat(path, &about) == 0) (void)fchmod(file, about.st_mode & 07777);
      return file;
    }
    if (errno != EEXIST) return no_file;
  }
  return no_file;
}

/* Where the file behind symbolic links is, or will be made: it is replaced, the links stay. 0: errno. */
static int follow(const char *path, char *target) {
  char to[PATH_MAX];
  size_t const length = strlen(path);
  if (length >= PATH_MAX) {
    errno = ENOENT;
    return 0;
  }
  memcpy(target, path, length + 1);
  for (int links = 0; links < MOST_LINKS; links++) {
    ssize_t const bytes = readlink(target, to, sizeof to);
    if (bytes < 0) return 1; /* no link */
    const char *const slash = to[0] == '/' ? NULL : strrchr(target, '/');
    size_t const folder = slash == NULL ? 0 : (size_t)(slash - target) + 1;
    if (folder + (size_t)bytes >= PATH_MAX) {
      errno = ENOENT;
      return 0;
    }
    memcpy(target + folder, to, (size_t)bytes);
    target[folder + (size_t)bytes] = 0;
  }
  errno = ELOOP;
  return 0;
}

static handle open_special(const char *path) { return open(path, O_WRONLY | O_CLOEXEC); }

static int put_bytes(handle file, const char *data, int64_t bytes) {
  while (bytes > 0) {
    int64_t const some = bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE;
    ssize_t const done = write(file, data, (size_t)some);
    if (done < 0 && errno != EINTR) return 0;
    if (done > 0) {
      data += done;
      bytes -= done;
    }
  }
  return 1;
}

static int finish(handle file, int sync) {
  int const forced = !sync || fsync(file) == 0;
  int const number = errno, closed = close(file) == 0;
  if (!forced) errno = number;
  return forced && closed;
}

/* The directory is forced to the disk as far as the system lets us open it. */
static int replace(const char *name, const char *path) {
  char folder[PATH_MAX];
  if (rename(name, path) != 0) return 0;
  const char *const slash = strrchr(path, '/');
  size_t const length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
  memcpy(folder, path, length);
  memcpy(folder + length, length == 0 ? "." : "", length == 0 ? 2 : 1);
  int const directory = open(folder, O_RDONLY | O_CLOEXEC);
  if (directory >= 0) {
    (void)fsync(directory);
    (void)close(directory);
  }
  return 1;
}

#endif

/* ---- Writing ---- */

static int put_pieces(handle file, const rpo_piece *pieces, int count) {
  for (int i = 0; i < count; i++) {
    if (!put_bytes(file, pieces[i].data, pieces[i].bytes)) return 0;
  }
  return 1;
}

static rpo_status write_special(const char *path, const rpo_piece *pieces, int count,
                                rpo_error *err) {
  handle const file = open_special(path);
  if (file == no_file) return fail_io(err, "write", path, errno);
  int const written = put_pieces(file, pieces, count), number = errno;
  int const closed = finish(file, 0);
  if (written && closed) return RPO_OK;
  return fail_io(err, "write all of", path, written ? errno : number);
}

static rpo_status write_regular(const char *path, const rpo_piece *pieces, int count,
                                rpo_error *err) {
  int64_t const room = (int64_t)strlen(path) + 64;
  char *const name = rpo_new(room, 1);
  if (name == NULL) return rpo_fail_memory(err, "a file name");
  handle const file = make_beside(path, name, room);
  rpo_status status = RPO_OK;
  if (file == no_file) {
    status = fail_io(err, "write", path, errno);
  } else {
    int good = put_pieces(file, pieces, count), number = errno;
    if (!finish(file, good) && good) {
      good = 0;
      number = errno;
    }
    if (good && !replace(name, path)) {
      good = 0;
      number = errno;
    }
    if (!good) {
      (void)remove(name);
      status = fail_io(err, "write all of", path, number);
    }
  }
  rpo_delete(name);
  return status;
}

rpo_status rpo_file_write(const char *path, const rpo_piece *pieces, int count, rpo_error *err) {
  if (is_special(path)) return write_special(path, pieces, count, err);
#if !defined(_WIN32)
  char target[PATH_MAX];
  if (!follow(path, target)) return fail_io(err, "write", path, errno);
  path = target;
#endif
  return write_regular(path, pieces, count, err);
}
