/* rpo.h as a C program sees it: before any other header, twice, without a warning. */
#include "rpo.h"
#include "rpo.h"

#include <stddef.h>
#include <string.h>

/* The layouts that other languages write down by hand. */
typedef char rpo_error_is_256_bytes[sizeof(rpo_error) == 256 ? 1 : -1];
typedef char rpo_index_follows[offsetof(rpo_matrix, index) == 24 ? 1 : -1];
typedef char rpo_data_follows[offsetof(rpo_matrix, data) == 32 ? 1 : -1];
typedef char rpo_projection_begins[offsetof(rpo_projection, components) == 8 ? 1 : -1];

int main(void) {
  rpo_error err;
  rpo_options *options = NULL;
  if (rpo_options_new(&options, &err) != RPO_OK) return 1;
  rpo_status const refused = rpo_options_set(options, RPO_OPT_N_TREES, 0.5, &err);
  rpo_options_free(options);
  return refused == RPO_EINVAL && strstr(err.message, "n_trees") != NULL ? 0 : 1;
}
