/* A chunk of columns of one row of A: `parts` values of type VECTOR, of LANES numbers each. Included by
 * loop_sparse.h with CHUNK, the function's name; constant arguments are constants where it is inlined. */
ALWAYS_INLINE void OF_TYPE(CHUNK)(int kind, int parts, int ahead, const OF_TYPE(entries) * r,
                                  const REAL *b, int64_t b_stride, REAL *out, int64_t out_stride) {
  typedef VECTOR vector;
  vector sum[8];
  if (kind == RPO_TRANSPOSED) {
    for (int v = 0; v < parts; v++) sum[v] = *(const vector *)(b + v * LANES);
  } else {
    for (int v = 0; v < parts; v++) sum[v] = (vector){0};
    for (int64_t e = 0; e < r->count; e++) {
      REAL const value = r->value[e * r->step];
      const REAL *const z = b + r->index[e] * b_stride;
      if (ahead && r->fetched_b > 0) OF_TYPE(fetch)(r, e, b, b_stride, r->fetched_b);
      for (int v = 0; v < parts; v++) sum[v] += value * *(const vector *)(z + v * LANES);
    }
  }
  for (int v = 0; v < parts; v++) sum[v] *= r->weight;
  if (kind == RPO_TIMES) {
    for (int v = 0; v < parts; v++) *(vector *)(out + v * LANES) = sum[v];
    return;
  }
  for (int64_t e = 0; e < r->count; e++) {
    REAL const value = r->value[e * r->step];
    REAL *const z = out + r->index[e] * out_stride;
    if (ahead && r->fetched_out > 0) OF_TYPE(fetch)(r, e, out, out_stride, r->fetched_out);
    for (int v = 0; v < parts; v++) *(vector *)(z + v * LANES) += value * sum[v];
  }
}

#undef CHUNK
#undef VECTOR
#undef LANES
