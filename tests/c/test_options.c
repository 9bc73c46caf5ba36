/* The table of options: unique, in bounds, strict. */
#include "data.h"
#include "options.h"

static void table_is_sound(void) {
  for (int32_t i = 0; i < RPO_OPTION_COUNT; i++) {
    int32_t id = 0;
    const char *name = NULL, *text = NULL;
    double fallback = NAN, low = NAN, high = NAN;
    rpo_error err;
    CHECK_OK(rpo_option_info(i, &id, &name, &fallback, &low, &high, &text, &err), &err);
    mini_context("option %s", name);
    CHECK(id > 0);
    CHECK(strlen(name) > 0 && strlen(text) > 0);
    CHECK(low <= fallback && fallback <= high);
    for (int32_t j = 0; j < i; j++) {
      int32_t other_id = 0;
      const char *other = NULL;
      CHECK_OK(rpo_option_info(j, &other_id, &other, NULL, NULL, NULL, NULL, &err), &err);
      CHECK(other_id != id);
      CHECK(strcmp(other, name) != 0);
    }
  }
}

static void positions_end(void) {
  rpo_error err;
  CHECK_EQUAL(rpo_option_info(RPO_OPTION_COUNT, NULL, NULL, NULL, NULL, NULL, NULL, &err),
              RPO_EINVAL);
  CHECK_EQUAL(err.code, RPO_EINVAL);
  CHECK_EQUAL(rpo_option_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_option_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL), RPO_OK);
}

static void refuse(rpo_options *options, int32_t id, const char *name, double value) {
  rpo_error err;
  double const before = rpo_option_get(options, (rpo_option)id);
  memset(&err, 0, sizeof err);
  mini_context("%s = %g", name, value);
  CHECK_EQUAL(rpo_options_set(options, id, value, &err), RPO_EINVAL);
  CHECK_EQUAL(err.code, RPO_EINVAL);
  CHECK(strstr(err.message, name) != NULL);
  CHECK(rpo_option_get(options, (rpo_option)id) == before);
  CHECK_EQUAL(rpo_options_set(options, id, value, NULL), RPO_EINVAL); /* err may be NULL */
}

static void set_is_strict(void) {
  rpo_options *options = NULL;
  rpo_error err;
  CHECK_OK(rpo_options_new(&options, &err), &err);
  for (int32_t i = 0; i < RPO_OPTION_COUNT; i++) {
    const rpo_option_row *const row = &rpo_option_table()[i];
    int32_t const id = (int32_t)row->id;
    mini_context("option %s", row->name);
    CHECK(rpo_option_get(options, row->id) == row->fallback);
    CHECK_OK(rpo_options_set(options, id, row->low, &err), &err);
    CHECK(rpo_option_get(options, row->id) == row->low);
    CHECK_OK(rpo_options_set(options, id, row->high, &err), &err);
    CHECK(rpo_option_get(options, row->id) == row->high);
    refuse(options, id, row->name, row->low - 1.0);
    if (row->high < INFINITY) refuse(options, id, row->name, nextafter(row->high, INFINITY));
    refuse(options, id, row->name, NAN);
    refuse(options, id, row->name, -INFINITY);
    if (row->whole)
      refuse(options, id, row->name, row->low + (row->high - row->low > 1 ? 1.5 : 0.5));
  }
  CHECK_EQUAL(rpo_options_set(options, 9999, 1.0, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_options_set(NULL, RPO_OPT_SEED, 1.0, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_options_new(NULL, &err), RPO_EINVAL);
  rpo_options_free(options);
  rpo_options_free(NULL);
}

static void library_names_itself(void) {
  int major = -1, minor = -1, patch = -1;
  CHECK_EQUAL(sscanf(rpo_version(), "%d.%d.%d", &major, &minor, &patch), 3);
  const char *const set = rpo_instruction_set();
  CHECK(strcmp(set, "baseline") == 0 || strcmp(set, "avx2") == 0 || strcmp(set, "avx512") == 0);
  CHECK(rpo_has_openmp() == 0 || rpo_has_openmp() == 1);
}

int main(void) {
  RUN(table_is_sound);
  RUN(positions_end);
  RUN(set_is_strict);
  RUN(library_names_itself);
  return mini_done("options");
}
