#include "epochs.h"

#include <glog/logging.h>

#include "ranks/batch_scaling.h"
#include "record_count.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/config/epochs.h"

namespace trainer {
namespace {

// Returns the field in epochs that messages are about.
const char* EpochField(const caffe::SolverParameter& solver) {
  if (solver.has_max_epoch()) return "max_epoch";
  if (solver.has_test_interval_epoch()) return "test_interval_epoch";
  return solver.has_snapshot_epoch() ? "snapshot_epoch" : "stepvalue_epoch";
}

// Returns how many records an epoch has, and how many a batch has. Throws kConfig if no layer of
// the training net reads a set of known size.
EpochSize MeasureEpoch(SolverSpec* spec) {
  const EpochLayer found = FindEpochLayer(spec);
  if (found.layer != nullptr) return {found.records, found.batch};
  const char* const field = EpochField(spec->proto);
  spec->Fail(field, Join(field,
                         " counts passes over the training records, but no data layer of the "
                         "training net reads a set of records; give the time in iterations"));
}

}  // namespace

std::string ApplyEpochs(const RankOptions& options, const Rank& rank, Communicator* group,
                        SolverSpec* spec) {
  if (!UsesEpochs(spec->proto)) return "";
  EpochSize epoch;
  if (rank.rank == 0) epoch = MeasureEpoch(spec);
  if (group != nullptr) {
    const std::vector<std::string> numbers =
        SplitList(group->BroadcastString(Join(epoch.records, ",", epoch.per_iteration)));
    epoch = {ParseNumber<int64_t>(numbers[0]).value(), ParseNumber<int64_t>(numbers[1]).value()};
  }
  epoch.per_iteration *= spec->proto.iter_size();
  if (!options.global_batch) epoch.per_iteration *= BatchParts(*spec, rank);
  const std::string line = ResolveEpochs(epoch, spec);
  LOG(INFO) << EscapeControl("Epochs: " + line);
  return line;
}

}  // namespace trainer
