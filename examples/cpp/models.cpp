// Train a forest and a boosted model on generated data, save, load, predict, in C++17:
//   c++ -std=c++17 models.cpp $(pkg-config --cflags --libs rpo) -o models && ./models folder
#include <rpo.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int rows = 1000, held_out = 200, inputs = 8, outputs = 30, best = 3, shown = 5;

// Handles that free themselves.
template <auto free>
struct Free {
  template <class T>
  void operator()(T *handle) const {
    free(handle);
  }
};
using Options = std::unique_ptr<rpo_options, Free<rpo_options_free>>;
using Features = std::unique_ptr<rpo_features, Free<rpo_features_free>>;
using Boost = std::unique_ptr<rpo_boost, Free<rpo_boost_free>>;
using Forest = std::unique_ptr<rpo_forest, Free<rpo_forest_free>>;

// Calls a function whose last argument is an rpo_error; failure becomes an exception.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
  rpo_error err = {};
  if (function(arguments..., &err) != RPO_OK) throw std::runtime_error(err.message);
}

// The same of a function that makes a handle, its last argument but one.
template <class Handle, class Function, class... Arguments>
Handle make(Function function, Arguments... arguments) {
  typename Handle::pointer handle = nullptr;
  call(function, arguments..., &handle);
  return Handle(handle);
}

struct Data {
  std::vector<double> x = std::vector<double>(rows * inputs);
  std::vector<float> y = std::vector<float>(rows * outputs);
};

// A row belongs to the outputs that its inputs point at.
Data generate() {
  Data data;
  uint32_t state = 1;
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < inputs; j++) {
      state = state * 1664525u + 1013904223u;
      double const v = static_cast<double>(state >> 8) / (1 << 24);
      data.x[static_cast<size_t>(i * inputs + j)] = v;
      if (v > 0.5) data.y[static_cast<size_t>(i * outputs + (j * 7) % outputs)] = 1.0f;
    }
  }
  return data;
}

// Row-major numbers as the library sees them.
rpo_matrix view(const void *data, rpo_dtype dtype, int64_t n, int64_t cols) {
  return {n, cols, RPO_DENSE, dtype, RPO_I32, 0, data, cols, 1, nullptr, nullptr};
}

rpo_control const two_threads = {2, 0, nullptr, nullptr, nullptr};

// Saves, loads, prints the best outputs of some rows; scores of boosting are log-odds.
void try_out(const Forest &model, const std::string &path, const Data &data, int first) {
  call(rpo_forest_save, model.get(), path.c_str(), nullptr, 0);
  auto const loaded = make<Forest>(rpo_forest_load, path.c_str());
  std::vector<int64_t> index(shown * best);
  std::vector<double> score(shown * best);
  rpo_matrix const X = view(data.x.data() + first * inputs, RPO_F64, shown, inputs);
  call(rpo_forest_predict_topk, loaded.get(), &X, best, &two_threads, index.data(), score.data());
  for (size_t i = 0; i < shown; i++) {
    std::printf("row %d:", first + static_cast<int>(i));
    for (size_t k = i * best; k < (i + 1) * best; k++) {
      bool const boosted = rpo_forest_is_boosted(loaded.get()) != 0;
      double const share = boosted ? 1.0 / (1.0 + std::exp(-score[k])) : score[k];
      std::printf("  output %2d %.2f", static_cast<int>(index[k]), share);
    }
    std::printf("\n");
  }
}

void forest(const Data &data, const std::string &folder) {
  rpo_matrix const X = view(data.x.data(), RPO_F64, rows, inputs);
  rpo_matrix const Y = view(data.y.data(), RPO_F32, rows, outputs);
  rpo_projection const projection = {RPO_PROJECT_GAUSSIAN, 0, 5, 0.0, 0, 0, nullptr};
  auto const options = make<Options>(rpo_options_new);
  call(rpo_options_set, options.get(), RPO_OPT_N_TREES, 50);
  call(rpo_options_set, options.get(), RPO_OPT_MAX_FEATURES, 3);
  auto const features = make<Features>(rpo_features_new, &X, 0, &two_threads);
  auto const model = make<Forest>(rpo_forest_fit, options.get(), features.get(), &Y, nullptr,
                                  nullptr, nullptr, &projection, &two_threads);
  std::printf("%d trees, %d bytes\n", static_cast<int>(rpo_forest_trees(model.get())),
              static_cast<int>(rpo_forest_bytes(model.get())));
  try_out(model, folder + "/forest.rpo", data, 0);
}

void boosting(const Data &data, const std::string &folder) {
  rpo_matrix const X = view(data.x.data(), RPO_F64, rows, inputs);
  rpo_matrix const Y = view(data.y.data(), RPO_F32, rows, outputs);
  rpo_projection const projection = {RPO_PROJECT_GAUSSIAN, 0, 1, 0.0, 0, 0, nullptr};
  std::vector<uint8_t> watched(rows);
  std::fill(watched.end() - held_out, watched.end(), uint8_t{1});
  rpo_boost_data const sample = {&Y, nullptr, nullptr, watched.data(), nullptr, nullptr, nullptr};
  auto const options = make<Options>(rpo_options_new);
  call(rpo_options_set, options.get(), RPO_OPT_LOSS, RPO_LOSS_LOGISTIC);
  call(rpo_options_set, options.get(), RPO_OPT_LEARNING_RATE, 0.3);
  call(rpo_options_set, options.get(), RPO_OPT_MAX_LEAF_NODES, 16);
  call(rpo_options_set, options.get(), RPO_OPT_L2, 1.0);
  auto const features = make<Features>(rpo_features_new, &X, 255, &two_threads);
  auto const boost =
      make<Boost>(rpo_boost_new, options.get(), features.get(), &sample, &projection, &two_threads);
  call(rpo_boost_run, boost.get(), 60, &two_threads);
  std::vector<double> loss(static_cast<size_t>(rpo_boost_rounds(boost.get()) + 1));
  call(rpo_boost_losses, boost.get(), nullptr, loss.data());
  auto const least = std::min_element(loss.begin() + 1, loss.end()) - loss.begin();
  std::printf("loss %.4f at first, %.4f after %d rounds\n", loss[0],
              loss[static_cast<size_t>(least)], static_cast<int>(least));
  auto const model = make<Forest>(rpo_boost_forest, boost.get(), least);
  try_out(model, folder + "/boosting.rpo", data, rows - shown);
}

}  // namespace

int main(int argc, char **argv) {
  try {
    Data const data = generate();
    std::string const folder = argc > 1 ? argv[1] : ".";
    forest(data, folder);
    boosting(data, folder);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
