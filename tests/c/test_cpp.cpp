// rpo.h must parse as C++ and link with C names.
#include "rpo.h"

int main() {
  rpo_options *options = nullptr;
  rpo_error error = {};
  if (rpo_options_new(&options, &error) != RPO_OK) return 1;
  rpo_status const refused = rpo_options_set(options, RPO_OPT_N_TREES, 0.5, &error);
  rpo_options_free(options);
  return refused == RPO_EINVAL && error.code == RPO_EINVAL && rpo_version()[0] != 0 ? 0 : 1;
}
