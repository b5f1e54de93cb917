#include "stage_data.h"

#include <glog/logging.h>

#include <set>

#include "shared_flags.h"
#include "trainer/base/attempt.h"
#include "trainer/base/text.h"
#include "trainer/config/prototxt.h"
#include "trainer/data/staged.h"

namespace trainer {
namespace {

// The databases that a net reads.
void AddSources(const NetUse& use, std::set<std::string>* sources) {
  for (const LayerSpec& layer : FilterLayers(*use.net, use.state)) {
    const caffe::DataParameter& param = layer.proto().data_param();
    if (layer.type() != "Data" || param.source().empty()) continue;
    if (param.backend() == caffe::DataParameter::TAR) continue;  // is read in its order as it is
    sources->insert(ResolvePath(param.source(), layer.Where().file));
  }
}

}  // namespace

std::vector<Flag> WithStagingFlags(std::vector<Flag> flags) {
  // Off unless it is asked for: a copy takes time and room that nobody expects, and where the
  // system's memory holds the data set, or its file system is fast, it gains nothing.
  flags.push_back({.name = "stage_data",
                   .value = "auto|DIR|off",
                   .fallback = "off",
                   .help = "copy databases to this machine first, once for all its ranks, and read "
                           "the copy: below DIR, or, auto, where they lie behind a network, below "
                           "$SLURM_TMPDIR, $LSCRATCH, $RAMDISK, $TMPDIR or /tmp"});
  flags.push_back({.name = "stage_keep",
                   .kind = FlagKind::kSwitch,
                   .help = "leave such copies for later runs, which use them while the database "
                           "is unchanged; else the last rank removes them"});
  return flags;
}

std::vector<std::unique_ptr<StagedCopy>> StageData(const Flags& flags) {
  std::vector<std::unique_ptr<StagedCopy>> copies;
  const StagingOptions options{flags.Text("stage_data"), flags.Switch("stage_keep")};
  if (options.folder == "off") return copies;
  std::set<std::string> sources;
  ErrorList told_later;
  Attempt(&told_later, [&] {
    const SolverSpec spec = SolverOf(flags);
    AddSources(spec.train, &sources);
    for (const NetUse& test : spec.tests) AddSources(test, &sources);
  });
  for (const std::string& source : sources) {
    auto copy = StageDatabase(source, options);
    if (copy == nullptr) continue;
    ReadInstead(source, copy->path());
    copies.push_back(std::move(copy));
  }
  LOG_IF(INFO, sources.empty() && told_later.empty())
      << "--stage_data: no Data layer reads an LMDB or a LevelDB; nothing is copied";
  return copies;
}

}  // namespace trainer
