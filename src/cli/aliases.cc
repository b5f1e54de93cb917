#include "aliases.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace trainer {
namespace {

constexpr std::string_view kTrain = "trainer train --solver=FILE";
constexpr std::string_view kTest = "trainer test --model=NET --weights=FILE";
constexpr std::string_view kPredict =
    "trainer predict --model=DEPLOY --weights=FILE --labels=NAMES PICTURE";
constexpr std::string_view kImages = "trainer dataset images ROOT LIST DB";
constexpr std::string_view kMean = "trainer dataset mean DB FILE";
constexpr std::string_view kFeatures =
    "trainer features --model=NET --weights=FILE --blobs=LIST --out=FILE.h5";
constexpr std::string_view kDraw = "trainer draw --model=NET --out=FILE.svg";
constexpr std::string_view kShow = "trainer show --model=NET";
constexpr std::string_view kUpgrade = "trainer upgrade OLD NEW";
constexpr std::string_view kResume = "trainer train --solver=FILE --resume=auto";
constexpr std::string_view kInspect =
    "trainer inspect --model=NET --weights=FILE --out=PAGE.html PICTURE";
constexpr std::string_view kLog = "trainer log FILE --out=DIR";

// Names of Caffe's programs and scripts without .py and .sh, and verbs of other trainers.
constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"benchmark", "trainer time --model=NET"},
    {"caffe", "trainer VERB"},
    {"classification", kPredict},
    {"compute_image_mean", kMean},
    {"convert_cifar_data", "trainer dataset cifar10 BATCHES DIR"},
    {"convert_imageset", kImages},
    {"convert_mnist_data", "trainer dataset idx IMAGES LABELS DB"},
    {"convert_mnist_siamese_data", "trainer dataset pairs DB PAIRS"},
    {"create_cifar10", "trainer dataset cifar10 BATCHES DIR"},
    {"create_imagenet", kImages},
    {"create_mnist", "trainer dataset idx IMAGES LABELS DB"},
    {"detect", kFeatures},
    {"draw_net", kDraw},
    {"eval", kTest},
    {"evaluate", kTest},
    {"explain", kInspect},
    {"extract_features", kFeatures},
    {"extract_seconds", kLog},
    {"finetune", "trainer train --solver=FILE --weights=FILE"},
    {"finetune_net", "trainer train --solver=FILE --weights=FILE"},
    {"fit", kTrain},
    {"infer", kPredict},
    {"make_imagenet_mean", kMean},
    {"net_speed_benchmark", "trainer time --model=NET"},
    {"parse_log", kLog},
    {"plot", kLog},
    {"plot_log", kLog},
    {"plot_training_log", kLog},
    {"profile", "trainer time --model=NET"},
    {"resume", kResume},
    {"resume_training", kResume},
    {"run", kTrain},
    {"score", kTest},
    {"summarize", kShow},
    {"summary", kShow},
    {"tensorboard", "trainer train --solver=FILE --run=DIR, then tensorboard --logdir=DIR"},
    {"test_net", kTest},
    {"train_net", kTrain},
    {"upgrade_net_proto_binary", kUpgrade},
    {"upgrade_net_proto_text", kUpgrade},
    {"upgrade_solver_proto_text", kUpgrade},
    {"val", kTest},
    {"validate", kTest},
    {"visualize", kInspect},
});

}  // namespace

std::string CommandFor(const std::string& name) {
  std::string_view bare = name;
  for (const std::string_view ending : {".py", ".sh", ".bin", ".exe"}) {
    if (bare.ends_with(ending)) bare.remove_suffix(ending.size());
  }
  bare.remove_prefix(bare.rfind('/') + 1);  // npos + 1 is 0
  std::string plain(bare);
  std::ranges::replace(plain, '-', '_');
  for (const auto& [other, command] : kNames) {
    if (other == plain) return std::string(command);
  }
  return "";
}

}  // namespace trainer
