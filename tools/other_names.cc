#include "other_names.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace trainer {
namespace {

constexpr std::string_view kOtherNamesTrain = "trainer train --solver=FILE";
constexpr std::string_view kOtherNamesTest = "trainer test --model=NET --weights=FILE";
constexpr std::string_view kOtherNamesClassify =
    "trainer classify --model=DEPLOY --weights=FILE --labels=NAMES PICTURE";
constexpr std::string_view kOtherNamesImages = "trainer dataset images ROOT LIST DB";
constexpr std::string_view kOtherNamesMean = "trainer dataset mean DB FILE";
constexpr std::string_view kOtherNamesFeatures =
    "trainer features --model=NET --weights=FILE --blobs=LIST --out=FILE.h5";
constexpr std::string_view kOtherNamesDraw = "trainer draw --model=NET --out=FILE.svg";
constexpr std::string_view kOtherNamesShow = "trainer show --model=NET";
constexpr std::string_view kOtherNamesUpgrade = "trainer upgrade OLD NEW";
constexpr std::string_view kResume = "trainer train --solver=FILE --resume=auto";
constexpr std::string_view kOtherNamesDeploy = "trainer deploy --model=NET --out=FILE";
constexpr std::string_view kOtherNamesLog = "trainer log FILE --out=DIR";

// Names of Caffe's programs and scripts without .py and .sh, and verbs of other trainers.
constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"benchmark", "trainer time --model=NET"},
    {"caffe", "trainer VERB"},
    {"classification", kOtherNamesClassify},
    {"compute_image_mean", kOtherNamesMean},
    {"convert_cifar_data", "trainer dataset cifar10 BATCHES DIR"},
    {"convert_imageset", kOtherNamesImages},
    {"convert_mnist_data", "trainer dataset idx IMAGES LABELS DB"},
    {"convert_mnist_siamese_data", "trainer dataset pairs DB PAIRS"},
    {"create_cifar10", "trainer dataset cifar10 BATCHES DIR"},
    {"create_imagenet", kOtherNamesImages},
    {"create_mnist", "trainer dataset idx IMAGES LABELS DB"},
    {"detect", kOtherNamesFeatures},
    {"draw_net", kOtherNamesDraw},
    {"eval", kOtherNamesTest},
    {"evaluate", kOtherNamesTest},
    {"export", kOtherNamesDeploy},
    {"extract_features", kOtherNamesFeatures},
    {"extract_seconds", kOtherNamesLog},
    {"finetune", "trainer train --solver=FILE --weights=FILE"},
    {"finetune_net", "trainer train --solver=FILE --weights=FILE"},
    {"fit", kOtherNamesTrain},
    {"infer", kOtherNamesClassify},
    {"make_imagenet_mean", kOtherNamesMean},
    {"net_speed_benchmark", "trainer time --model=NET"},
    {"parse_log", kOtherNamesLog},
    {"plot", kOtherNamesLog},
    {"plot_log", kOtherNamesLog},
    {"plot_training_log", kOtherNamesLog},
    {"predict", kOtherNamesClassify},
    {"profile", "trainer time --model=NET"},
    {"resume", kResume},
    {"resume_training", kResume},
    {"run", kOtherNamesTrain},
    {"score", kOtherNamesTest},
    {"summarize", kOtherNamesShow},
    {"summary", kOtherNamesShow},
    {"tensorboard", "trainer train --solver=FILE --run=DIR, then tensorboard --logdir=DIR"},
    {"test_net", kOtherNamesTest},
    {"train_net", kOtherNamesTrain},
    {"upgrade_net_proto_binary", kOtherNamesUpgrade},
    {"upgrade_net_proto_text", kOtherNamesUpgrade},
    {"upgrade_solver_proto_text", kOtherNamesUpgrade},
    {"val", kOtherNamesTest},
    {"validate", kOtherNamesTest},
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
