#include "options.h"

#include <math.h>

#define WHOLE 9007199254740992.0 /* 2^53: whole numbers up to here are exact */

static const rpo_option_row table[RPO_OPTION_COUNT] = {
    {RPO_OPT_SEED, 1, "seed", 0, 0, WHOLE, "key of every random draw"},
    {RPO_OPT_N_TREES, 1, "n_trees", 100, 1, 1e9, "trees to grow"},
    {RPO_OPT_FIRST_TREE, 1, "first_tree", 0, 0, 1e9,
     "number of the first tree: trees first .. first + n - 1 of the forest of this seed"},
    {RPO_OPT_MAX_DEPTH, 1, "max_depth", 0, 0, 1e9,
     "deepest leaf, the root being at 0; 0: no limit"},
    {RPO_OPT_MIN_SAMPLES_SPLIT, 1, "min_samples_split", 2, 2, WHOLE,
     "a node with fewer rows is a leaf (the paper's n_min)"},
    {RPO_OPT_MIN_SAMPLES_LEAF, 1, "min_samples_leaf", 1, 1, WHOLE, "fewest rows in a leaf"},
    {RPO_OPT_MIN_WEIGHT_FRACTION_LEAF, 0, "min_weight_fraction_leaf", 0, 0, 0.5,
     "smallest share of the total weight in a leaf"},
    {RPO_OPT_MAX_FEATURES, 1, "max_features", 0, 0, WHOLE,
     "features drawn at a node (the paper's k); 0: all"},
    {RPO_OPT_MAX_LEAF_NODES, 1, "max_leaf_nodes", 0, 0, WHOLE,
     "most leaves, grown best first; 0: no limit, grown depth first"},
    {RPO_OPT_MIN_IMPURITY_DECREASE, 0, "min_impurity_decrease", 0, 0, INFINITY,
     "smallest weighted decrease of impurity of a split"},
    {RPO_OPT_RANDOM_CUT, 1, "random_cut", 0, 0, 1,
     "1: one cut a feature, uniform between the node's smallest and largest value (extra-trees)"},
    {RPO_OPT_DRAW_NON_CONSTANT, 1, "draw_non_constant", 0, 0, 1,
     "1: draw until max_features features are not constant in the node, instead of one at least"},
    {RPO_OPT_CCP_ALPHA, 0, "ccp_alpha", 0, 0, INFINITY, "cost-complexity pruning; 0: none"},
    {RPO_OPT_IMPURITY_SCALE, 0, "impurity_scale", 1, 0, 1e30,
     "factor from the sum of the outputs' variances to the impurity reported and compared"},
    {RPO_OPT_BOOTSTRAP, 1, "bootstrap", 0, 0, 1, "1: each tree sees rows drawn with replacement"},
    {RPO_OPT_MAX_SAMPLES, 1, "max_samples", 0, 0, WHOLE,
     "draws of a bootstrap; 0: as many as rows"},
    {RPO_OPT_BALANCE, 1, "balance", 0, 0, 2,
     "class weights from each bootstrap sample: 1: of classes, 2: of labels, multiplied "
     "(rpo_balance)"},
    {RPO_OPT_LABEL_RATIO, 1, "label_ratio", 0, 0, 1,
     "1: labels are d numerators, then d denominators; predictions are their ratio"},
    {RPO_OPT_LOSS, 1, "loss", RPO_LOSS_SQUARED, 0, RPO_LOSS_CUSTOM, "boosting: an rpo_loss"},
    {RPO_OPT_LEARNING_RATE, 0, "learning_rate", 0.1, 1e-6, 1, "boosting: factor of every step"},
    {RPO_OPT_SUBSAMPLE, 0, "subsample", 1, 1e-9, 1,
     "boosting: share of the rows a round sees, drawn without replacement"},
    {RPO_OPT_RELABEL, 1, "relabel", 1, 0, 1,
     "boosting: 1: leaves hold all outputs, 0: a tree has one component, outputs take multiples"},
    {RPO_OPT_LEAF, 1, "leaf", RPO_LEAF_NEWTON, 0, RPO_LEAF_MEAN, "boosting: an rpo_leaf"},
    {RPO_OPT_L2, 0, "l2", 0, 0, INFINITY, "boosting: added to the curvature of Newton steps"},
    {RPO_OPT_HUBER_QUANTILE, 0, "huber_quantile", 0.9, 0, 1,
     "boosting: delta of an output is this quantile of its distances from the median"},
    {RPO_OPT_LEAF_MIN_GAIN, 0, "leaf_min_gain", 0, 0, INFINITY,
     "boosting: outputs that a Newton step of a leaf improves by less are left as they are"},
    {RPO_OPT_HALF, 1, "half", 0, 0, 1, "boosting: 1: leaves hold 16-bit numbers"},
    {RPO_OPT_TRAIN_LOSS, 1, "train_loss", 0, 0, 1,
     "boosting: 1: the loss of the rows in each round's sample is kept"},
};

const rpo_option_row *rpo_option_table(void) { return table; }

int rpo_option_find(int32_t id) {
  for (int i = 0; i < RPO_OPTION_COUNT; i++) {
    if ((int32_t)table[i].id == id) return i;
  }
  return -1;
}

void rpo_options_default(rpo_options *options) {
  for (int i = 0; i < RPO_OPTION_COUNT; i++) options->value[i] = table[i].fallback;
}

rpo_status rpo_options_check(int position, double value, rpo_error *err) {
  const rpo_option_row *const row = &table[position];
  if (!(value >= row->low && value <= row->high)) {
    return rpo_fail(err, RPO_EINVAL, "%s must be between %.16g and %.16g, got %.16g", row->name,
                    row->low, row->high, value);
  }
  if (row->whole && value != floor(value)) {
    return rpo_fail(err, RPO_EINVAL, "%s must be a whole number, got %.16g", row->name, value);
  }
  return RPO_OK;
}

double rpo_option_get(const rpo_options *options, rpo_option id) {
  return options->value[rpo_option_find((int32_t)id)];
}

int64_t rpo_option_whole(const rpo_options *options, rpo_option id) {
  return (int64_t)rpo_option_get(options, id);
}
