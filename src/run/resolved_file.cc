#include "resolved_file.h"

#include <glog/logging.h>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/resolved_solver.h"

namespace trainer {
namespace {

// Writes the file with the first snapshot, so that a run without snapshots leaves no file. If that
// fails, warns and tries again with the next snapshot.
class ResolvedWriter final : public TrainingObserver {
 public:
  explicit ResolvedWriter(const SolverSpec& spec) : spec_(spec) {}

  void OnSnapshot(const SnapshotReport&) override {
    if (written_) return;
    const std::string path = ResolvedPath(spec_);
    try {
      WriteWhole(path, ResolvedText(spec_));
      written_ = true;
      LOG(INFO) << EscapeControl(
          Join("Wrote the solver and its nets, with the changes made by flags, to ", path));
    } catch (const Error& error) {
      LOG(WARNING) << error.what() << "; the run tries again with the next snapshot";
    }
  }

 private:
  const SolverSpec& spec_;
  bool written_ = false;
};

}  // namespace

std::string ResolvedPath(const SolverSpec& spec) {
  return spec.proto.snapshot_prefix() + "_resolved.prototxt";
}

std::unique_ptr<TrainingObserver> MakeResolvedFileWriter(const SolverSpec& spec) {
  return std::make_unique<ResolvedWriter>(spec);
}

}  // namespace trainer
