/* Entries of a block of rows times lines of 64 bytes. Included for each type of numbers, REAL. */
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

/* The panel's lines times values are added to the block's, which are near, or, `back`, the other way round.
 * Those of entries to come are on their way: the panel's are far, the block's in the second-level
 * cache. */
ALWAYS_INLINE void PASTE(tile_to, REAL)(int back, const ENTRY *e, int64_t count, REAL *near,
                                        REAL *panel) {
  for (const ENTRY *const end = e + count; e < end; e++) {
    REAL *const x = near + e->row * NUMBERS, *const z = panel + e->column * NUMBERS;
    FETCH(panel + e[RPO_TILE_AHEAD - 1].column * NUMBERS, 2);
    FETCH(near + e[RPO_TILE_AHEAD / 2].row * NUMBERS, 3);
    PASTE(add_line, REAL)(back ? z : x, e->value, back ? x : z);
  }
}

static void PASTE(tile, REAL)(int back, const void *entry, int64_t count, void *near, void *panel) {
  if (back) {
    PASTE(tile_to, REAL)(1, entry, count, near, panel);
  } else {
    PASTE(tile_to, REAL)(0, entry, count, near, panel);
  }
}

#undef PASTE_
#undef PASTE
#undef ENTRY
#undef NUMBERS
#undef REAL
