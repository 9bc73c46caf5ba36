/* Entries of a block of rows times lines of 64 bytes. Included for each type of numbers, REAL. */
#define NEAR_AHEAD 16
#define PASTE_(name, tag) name##_##tag
#define PASTE(name, tag) PASTE_(name, tag)
#define ENTRY PASTE(rpo_entry, REAL)
#define NUMBERS ((int64_t)(64 / sizeof(REAL)))

#if defined(__GNUC__)
typedef REAL PASTE(aligned_line, REAL) __attribute__((vector_size(64), may_alias));
#endif

ALWAYS_INLINE void PASTE(add_line, REAL)(REAL *to, REAL value, const REAL *from) {
#if defined(__GNUC__)
  typedef PASTE(aligned_line, REAL) line;
  *(line *)to += value * *(const line *)from;
#else
  for (int64_t c = 0; c < NUMBERS; c++) to[c] += value * from[c];
#endif
}

/* The columns' lines times values are added to the rows', or, `back`, the other way round. What is read is
 * far when a tile or a block begins; what is added to is in the second-level cache, or the first. */
ALWAYS_INLINE void PASTE(tile_to, REAL)(int back, const ENTRY *e, int64_t count, REAL *rows,
                                        REAL *columns) {
  for (const ENTRY *const end = e + count; e < end; e++) {
    REAL *const x = rows + e->row, *const z = columns + e->column;
    const ENTRY *const far = e + RPO_TILE_AHEAD - 1, *const near = e + NEAR_AHEAD;
    FETCH(back ? rows + far->row : columns + far->column, 3);
    FETCH(back ? columns + near->column : rows + near->row, 3);
    PASTE(add_line, REAL)(back ? z : x, e->value, back ? x : z);
  }
}

static void PASTE(tile, REAL)(int back, const void *entry, int64_t count, void *rows,
                              void *columns) {
  if (back) {
    PASTE(tile_to, REAL)(1, entry, count, rows, columns);
  } else {
    PASTE(tile_to, REAL)(0, entry, count, rows, columns);
  }
}

#undef PASTE_
#undef PASTE
#undef ENTRY
#undef NEAR_AHEAD
#undef NUMBERS
#undef REAL
