/* Saving: at once or not at all, behind links, with another note. */
#if !defined(_WIN32)
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#endif
#include "forge.h"
#include "forms.h"
#include "mem.h"
#include "model.h"

/* ---- Notes ---- */

/* The model's file as another program may write it: its note, the last section, before section `to`. */
static unsigned char *with_note_at(const rpo_forest *m, int64_t to) {
  unsigned char *const from = forest_bytes(m);
  int64_t const bytes = rpo_forest_bytes(m);
  unsigned char *const out = mini_room(bytes, 1);
  rpo_header head;
  CHECK_EQUAL(rpo_header_read(from, bytes, &head, NULL), RPO_OK);
  int64_t at = rpo_first_section(head.sections);
  memcpy(out, from, (size_t)bytes);
  for (int64_t i = 0; i < head.sections; i++) {
    int64_t const source = i < to ? i : i == to ? (int64_t)head.sections - 1 : i - 1;
    rpo_table_row const row = rpo_table_at(from, source);
    memcpy(out + 64 + 32 * i, from + 64 + 32 * source, 32);
    put_number(out + 64 + 32 * i + 8, 8, (uint64_t)at);
    memcpy(out + at, from + row.offset, (size_t)rpo_section_bytes(&row));
    at += rpo_section_bytes(&row);
  }
  CHECK_EQUAL(at, bytes);
  reseal(out, bytes);
  free(from);
  return out;
}

static void save_and_check(const rpo_forest *m, const char *note, const rpo_forest *plain) {
  const char *const path = "test_saving.rpo";
  int64_t length = -1;
  rpo_forest *a = NULL, *b = NULL;
  rpo_error err;
  CHECK_OK(rpo_forest_save(m, path, note, (int64_t)strlen(note), &err), &err);
  CHECK_OK(rpo_forest_load(path, &a, &err), &err);
  const void *const found = rpo_forest_note(a, &length);
  CHECK_EQUAL(length, strlen(note));
  CHECK(length == 0 || memcmp(found, note, (size_t)length) == 0);
  CHECK_OK(rpo_forest_save(a, path, NULL, 0, &err), &err);
  CHECK_OK(rpo_forest_load(path, &b, &err), &err);
  CHECK(forests_equal(b, plain));
  rpo_forest_free(a);
  rpo_forest_free(b);
  (void)remove(path);
}

/* Wherever a file has its note: the next save leaves it out, and nothing else. */
static void notes_anywhere_are_replaced(void) {
  const char *const path = "test_saving.rpo";
  for (int form = 0; form < ALL_FORMS; form += 5) {
    rpo_forest *const plain = form_forest(form), *noted = NULL;
    rpo_header head;
    rpo_error err;
    CHECK_OK(rpo_forest_save(
                 plain, path,
                 "of 70 bytes, which is more than one boundary of sections: 64 bytes ..", 69, &err),
             &err);
    CHECK_OK(rpo_forest_load(path, &noted, &err), &err);
    CHECK_EQUAL(rpo_header_read(noted->block, noted->bytes, &head, NULL), RPO_OK);
    for (int64_t to = 0; to < head.sections; to++) {
      unsigned char *const block = with_note_at(noted, to);
      rpo_forest *moved = NULL;
      mini_context("form %d, note at %d", form, (int)to);
      CHECK_OK(rpo_forest_parse(block, noted->bytes, &moved, &err), &err);
      save_and_check(moved, "another", plain);
      save_and_check(moved, "", plain);
      rpo_forest_free(moved);
      free(block);
    }
    rpo_forest_free(plain);
    rpo_forest_free(noted);
  }
  (void)remove(path);
}

#if !defined(_WIN32)

/* ---- At once or not at all ---- */

static int files_beside(const char *prefix) {
  int count = 0;
  DIR *const folder = opendir(".");
  if (folder == NULL) return -1;
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
  }
  (void)closedir(folder);
  return count;
}

static void remove_beside(const char *prefix) {
  DIR *const folder = opendir(".");
  if (folder == NULL) return;
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) (void)remove(entry->d_name);
  }
  (void)closedir(folder);
}

static rpo_forest *large_forest(uint64_t seed) {
  dice d = {seed};
  problem p =
      problem_new(table_random(&d, 600, 5, 0, 0.0, 0.0), table_random(&d, 600, 9, 0, 0.0, 0.0));
  rpo_forest *const forest = problem_forest(&p, 1);
  problem_free(&p);
  return forest;
}

/* A child saves one model and another in turn, until it is killed: what is there is one of them. */
static void killed_saves_leave_old_or_new(void) {
  rpo_forest *const a = large_forest(1), *const b = large_forest(2);
  dice d = {3};
  int64_t met[2] = {0, 0};
  CHECK_EQUAL(rpo_forest_save(a, "killed.rpo", NULL, 0, NULL), RPO_OK);
  for (int k = 0; k < 60 || (k < 2000 && (met[0] == 0 || met[1] == 0)); k++) {
    pid_t const child = fork();
    if (child == 0) {
      for (;;) {
        (void)rpo_forest_save(b, "killed.rpo", NULL, 0, NULL);
        (void)rpo_forest_save(a, "killed.rpo", NULL, 0, NULL);
      }
    }
    CHECK(child > 0);
    /* longer where a save takes longer, as in an emulator */
    long const nanoseconds = (100000 + 1000 * (long)dice_below(&d, 8000)) * (1 + k / 60);
    struct timespec const moment = {0, nanoseconds};
    (void)nanosleep(&moment, NULL);
    CHECK_EQUAL(kill(child, SIGKILL), 0);
    CHECK_EQUAL(waitpid(child, NULL, 0), child);
    rpo_forest *c = NULL;
    rpo_error err;
    CHECK_OK(rpo_forest_load("killed.rpo", &c, &err), &err);
    CHECK(forests_equal(c, a) || forests_equal(c, b));
    met[forests_equal(c, b)]++;
    rpo_forest_free(c);
  }
  CHECK(met[0] > 0 && met[1] > 0);
  remove_beside("killed.rpo"); /* with what killed ones left behind */
  rpo_forest_free(a);
  rpo_forest_free(b);
}

/* Files may have 1000 bytes, and no signal tells of it. */
static int saves_in_vain(const rpo_forest *m, const char *path) {
  struct rlimit before, small;
  rpo_error err;
  CHECK_EQUAL(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 1000;
  (void)signal(SIGXFSZ, SIG_IGN);
  CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &small), 0);
  rpo_status const status = rpo_forest_save(m, path, NULL, 0, &err);
  CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
  return status == RPO_EIO && strstr(err.message, "larger than files may be") != NULL;
}

static void failed_saves_leave_the_old_file(void) {
  rpo_forest *const a = form_forest(0), *const b = large_forest(1), *c = NULL;
  rpo_error err;
  CHECK_OK(rpo_forest_save(a, "full.rpo", NULL, 0, &err), &err);
  CHECK(saves_in_vain(b, "full.rpo"));
  CHECK(saves_in_vain(b, "full.rpo.never"));
  CHECK_EQUAL(files_beside("full.rpo"), 1); /* nothing else is left */
  CHECK_OK(rpo_forest_load("full.rpo", &c, &err), &err);
  CHECK(forests_equal(a, c));
  rpo_forest_free(c);
  (void)remove("full.rpo");
  if (access("/dev/full", W_OK) == 0) { /* no file: written to directly */
    CHECK_EQUAL(rpo_forest_save(b, "/dev/full", NULL, 0, &err), RPO_EIO);
    CHECK(strstr(err.message, "no space left") != NULL);
    CHECK_EQUAL(rpo_forest_save(b, "/dev/null", NULL, 0, &err), RPO_OK);
  }
  CHECK_EQUAL(rpo_forest_save(b, ".", NULL, 0, &err), RPO_EIO);
  CHECK(strstr(err.message, "it is a directory") != NULL);
  CHECK_OK(rpo_forest_save(a, "full.rpo", NULL, 0, &err), &err);
  CHECK_EQUAL(rpo_forest_save(b, "full.rpo/in.rpo", NULL, 0, &err), RPO_EIO); /* no folder */
  (void)remove("full.rpo");
  rpo_forest_free(a);
  rpo_forest_free(b);
}

/* Names of killed saves of a process with this one's number are passed by. */
static void leftovers_are_in_nobodys_way(void) {
  rpo_forest *const m = form_forest(0), *found = NULL;
  char name[80];
  rpo_error err;
  for (int n = 0; n < 3; n++) {
    (void)snprintf(name, sizeof name, "left.rpo.tmp-%ld-%d", (long)getpid(), n);
    FILE *const file = fopen(name, "wb");
    CHECK(file != NULL && fclose(file) == 0);
  }
  CHECK_OK(rpo_forest_save(m, "left.rpo", NULL, 0, &err), &err);
  CHECK_OK(rpo_forest_load("left.rpo", &found, &err), &err);
  CHECK(forests_equal(m, found));
  CHECK_EQUAL(files_beside("left.rpo"), 4);
  remove_beside("left.rpo");
  rpo_forest_free(m);
  rpo_forest_free(found);
}

/* ---- Links ---- */

/* The file behind a link is replaced, with the permissions it had; readers of the old one keep it. */
static void replaced_files_keep_links_and_permissions(void) {
  rpo_forest *const a = form_forest(0), *const b = form_forest(1), *mapped = NULL, *c = NULL;
  struct stat about;
  rpo_error err;
  CHECK_OK(rpo_forest_save(a, "kept.rpo", NULL, 0, &err), &err);
  CHECK_EQUAL(chmod("kept.rpo", 0640), 0);
  (void)remove("link.rpo");
  CHECK_EQUAL(symlink("kept.rpo", "link.rpo"), 0);
  CHECK_OK(rpo_forest_open_mapped("link.rpo", &mapped, &err), &err);
  CHECK_OK(rpo_forest_save(b, "link.rpo", NULL, 0, &err), &err);
  CHECK(lstat("link.rpo", &about) == 0 && S_ISLNK(about.st_mode));
  CHECK(stat("kept.rpo", &about) == 0 && (about.st_mode & 07777) == 0640);
  CHECK_OK(rpo_forest_load("kept.rpo", &c, &err), &err);
  CHECK(forests_equal(b, c));
  CHECK(forests_equal(a, mapped));
  rpo_forest_free(a);
  rpo_forest_free(b);
  rpo_forest_free(c);
  rpo_forest_free(mapped);
  (void)remove("link.rpo");
  (void)remove("kept.rpo");
}

/* Saves through `link`, which stays one, and finds the model at `path`. */
static void saved_behind(const rpo_forest *m, const char *link, const char *path) {
  struct stat about;
  rpo_forest *found = NULL;
  rpo_error err;
  mini_context("%s", link);
  CHECK_OK(rpo_forest_save(m, link, NULL, 0, &err), &err);
  CHECK(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
  CHECK(lstat(path, &about) == 0 && S_ISREG(about.st_mode));
  CHECK_OK(rpo_forest_load(path, &found, &err), &err);
  CHECK(forests_equal(m, found));
  rpo_forest_free(found);
}

static void not_saved_behind(const rpo_forest *m, const char *link, const char *reason) {
  struct stat about;
  rpo_error err;
  mini_context("%s", link);
  CHECK_EQUAL(rpo_forest_save(m, link, NULL, 0, &err), RPO_EIO);
  CHECK(strstr(err.message, reason) != NULL);
  CHECK(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
}

/* Links to a file that is not there yet, through folders, one behind the other, without an end. */
static void files_behind_links_are_made(void) {
  rpo_forest *const m = form_forest(0);
  char here[2000], whole[2100], *const too_long = mini_room(5000, 1);
  CHECK(getcwd(here, sizeof here) != NULL);
  (void)snprintf(whole, sizeof whole, "%s/links/whole.rpo", here);
  CHECK(mkdir("links", 0700) == 0 && mkdir("links/inner", 0700) == 0);
  CHECK_EQUAL(symlink("made.rpo", "links/beside"), 0);
  CHECK_EQUAL(symlink("inner/deep.rpo", "links/below"), 0);
  CHECK_EQUAL(symlink("../up.rpo", "links/inner/above"), 0);
  CHECK_EQUAL(symlink("inner/above", "links/twice"), 0);
  CHECK_EQUAL(symlink(whole, "links/whole"), 0);
  CHECK_EQUAL(symlink("links/made.rpo", "links.rpo"), 0);
  CHECK_EQUAL(symlink("other", "links/one"), 0);
  CHECK_EQUAL(symlink("one", "links/other"), 0);
  CHECK_EQUAL(symlink("nowhere/x.rpo", "links/nowhere.rpo"), 0);
  saved_behind(m, "links/beside", "links/made.rpo");
  saved_behind(m, "links/below", "links/inner/deep.rpo");
  saved_behind(m, "links/twice", "links/up.rpo");
  saved_behind(m, "links/whole", "links/whole.rpo");
  saved_behind(m, "links.rpo", "links/made.rpo");
  not_saved_behind(m, "links/one", "too many symbolic links");
  not_saved_behind(m, "links/nowhere.rpo", "no such file or directory");
  memset(too_long, 'x', 4999);
  too_long[4999] = 0;
  CHECK_EQUAL(rpo_forest_save(m, too_long, NULL, 0, NULL), RPO_EIO);
  static const char *const made[] = {"links/beside",    "links/below",          "links/inner/above",
                                     "links/twice",     "links/whole",          "links.rpo",
                                     "links/one",       "links/other",          "links/nowhere.rpo",
                                     "links/made.rpo",  "links/inner/deep.rpo", "links/up.rpo",
                                     "links/whole.rpo", "links/inner",          "links"};
  for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) CHECK_EQUAL(remove(made[i]), 0);
  free(too_long);
  rpo_forest_free(m);
}

#endif

int main(void) {
  RUN(notes_anywhere_are_replaced);
#if !defined(_WIN32)
  RUN(killed_saves_leave_old_or_new);
  RUN(failed_saves_leave_the_old_file);
  RUN(leftovers_are_in_nobodys_way);
  RUN(replaced_files_keep_links_and_permissions);
  RUN(files_behind_links_are_made);
#endif
  return mini_done("saving");
}
