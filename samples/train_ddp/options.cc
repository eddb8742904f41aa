#include "samples/train_ddp/options.h"

#include <CLI/CLI.hpp>
#include <string>

namespace train_ddp {
namespace {

constexpr char kFooter[] = R"(
One process is one rank. Start it alone, by torchrun --no-python, mpirun or srun, or by hand with RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT set. Every rank gets the same options.

Figures, an epoch:
  loss                   mean over the training samples, as they were met
  accuracy               share of the test data classified rightly, each sample counted once; of the training samples without test data
  images/s               images delivered to all ranks, padding left out, over the seconds the training of the epoch took
  consumer wait          share of those seconds the training loop stood waiting for the next batch, mean of all ranks
With --json one object an epoch on rank 0: epoch, loss, accuracy (0 to 1), train_accuracy, samples, evaluated, substituted, masked,
images_per_s, consumer_wait_percent, gpu_busy_percent (null without a device), seconds, evaluation_seconds, parameters_digest.
With --loader-only: epoch, samples, load_images_per_s, seconds. Nothing is trained; the batches are taken as fast as they come, so the same
figure for --data and --raw compares the two ways to load.

--raw is the plain way, for comparison: each image is opened, read, decoded and resized one after another in the thread that trains.

Exit status: 0 done, 1 the run failed, 2 wrong usage.)";

struct Recipe {
  std::uint32_t epochs, batch_size, shift;
  double learning_rate, dropout;
  bool adam;
  const char* transform;
};

// cnn: reaches 98 % on 4,500 handwritten digits. The residual networks: the usual recipe for ImageNet, the rate for a
// global batch of 256.
Recipe RecipeOf(const std::string& model) {
  if (model == "cnn") return {12, 32, 2, 2e-3, 0.5, true, "none"};
  return {90, 32, 0, 0.1, 0.0, false, "train"};
}

void FillIn(Options& options) {
  const Recipe recipe = RecipeOf(options.model);
  options.num_epochs = options.epochs.value_or(recipe.epochs);
  options.rank_batch = options.batch_size.value_or(recipe.batch_size);
  options.shift_pixels = options.shift.value_or(recipe.shift);
  options.dropout_share = options.dropout.value_or(recipe.dropout);
  options.use_adam = options.optimizer ? *options.optimizer == "adam" : recipe.adam;
  options.base_learning_rate = options.learning_rate.value_or(options.use_adam == recipe.adam ? recipe.learning_rate
                                                              : options.use_adam              ? 1e-3
                                                                                              : 0.05);
  namespace loader = shardpack::loader;
  const std::string transform = options.transform.value_or(recipe.transform);
  options.test_transform = loader::EvalTransform(options.resize, options.size);
  if (transform == "none") options.train_transform = options.test_transform = loader::NoTransform();
  if (transform == "train") options.train_transform = loader::TrainTransform(options.size);
  if (transform == "eval") options.train_transform = options.test_transform;
  if (transform == "classic") options.train_transform = loader::ClassicTransform(options.resize, options.size);
}

void Describe(CLI::App& app, Options& o) {
  auto* data =
      app.add_option("--data", o.data, "Data set to train on, made by shardpack convert")->type_name("DATASET");
  app.add_option("--test", o.test, "Data set to test on after each epoch")->type_name("DATASET")->needs(data);
  auto* raw = app.add_option("--raw", o.raw, "Train on the images of class folders, loaded plainly")
                  ->type_name("DIR")
                  ->excludes(data);
  app.add_option("--raw-test", o.raw_test, "Class folders to test on")->type_name("DIR")->needs(raw);
  app.add_option("--model", o.model, "Network")
      ->check(CLI::IsMember({"cnn", "resnet18", "resnet50"}))
      ->capture_default_str();
  app.add_option("--epochs", o.epochs, "Default: 12 (cnn), 90 (resnets)")->check(CLI::Range(1u, 1000000u));
  app.add_option("--batch-size", o.batch_size, "Of each rank; default 32")->check(CLI::Range(1u, 1u << 20));
  app.add_option("--optimizer", o.optimizer, "Default: adam (cnn), sgd (resnets)")
      ->check(CLI::IsMember({"sgd", "adam"}));
  app.add_option("--lr", o.learning_rate,
                 "Highest learning rate, reached after a linear warm-up, then falling as a cosine. Default: 2e-3 "
                 "(cnn), 0.1 x global "
                 "batch / 256 (resnets)")
      ->check(CLI::PositiveNumber);
  app.add_option("--dropout", o.dropout, "Of the cnn; default 0.5")->check(CLI::Range(0.0, 0.9));
  app.add_option(
         "--shift", o.shift,
         "Training images are moved by up to so many pixels, drawn by seed, epoch and sample; default 2 (cnn), 0")
      ->check(CLI::Range(0u, 64u));
  app.add_option("--transform", o.transform,
                 "Of training images: none, train, eval or classic; test images take eval unless it is none. Default: "
                 "none (cnn), train")
      ->check(CLI::IsMember({"none", "train", "eval", "classic"}));
  app.add_option("--size", o.size, "Side of the images a transform gives")
      ->check(CLI::Range(1u, 16384u))
      ->capture_default_str();
  app.add_option("--resize", o.resize, "Shorter side before the crop of eval and classic")
      ->check(CLI::Range(1u, 16384u))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "Of parameters, order and augmentation")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--threads", o.threads, "Decoding threads of each rank; 0: this rank's share of the machine")
      ->check(CLI::Range(0, 4096));
  app.add_option("--backend", o.backend, "auto: nccl where there are devices, else gloo")
      ->check(CLI::IsMember({"auto", "gloo", "nccl"}))
      ->capture_default_str();
  app.add_option("--timeout", o.timeout_seconds, "Seconds after which a silent peer ends the run")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  app.add_option("--log-steps", o.log_steps, "A line on stderr every so many steps; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", o.json, "One JSON object an epoch on stdout");
  app.add_flag("--loader-only", o.loader_only, "Load each epoch's batches and train nothing");
  app.footer(kFooter);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("train_ddp: ") + error.what() + " (see --help)\n";
  });
}

}  // namespace

std::optional<Options> Parse(int argc, char** argv, int* status) {
  Options options;
  CLI::App app{"Trains an image classifier on one or more ranks from a shardpack dataset."};
  app.name("train_ddp");
  Describe(app, options);
  try {
    app.parse(argc, argv);
    if (options.data.empty() && options.raw.empty()) throw CLI::RequiredError("--data or --raw");
    const bool resizes_below = options.resize < options.size;
    if (resizes_below &&
        (options.transform == "eval" || options.transform == "classic" || options.transform == "train")) {
      throw CLI::ValidationError("--resize", "must not be smaller than --size");
    }
  } catch (const CLI::ParseError& error) {
    *status = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  FillIn(options);
  return options;
}

}  // namespace train_ddp
