#include "snapshot_links.h"

#include <glog/logging.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Returns the end of the names of a run's files: ".h5" for HDF5.
std::string FormatSuffix(const caffe::SolverParameter& solver) {
  return solver.snapshot_format() == caffe::SolverParameter::HDF5 ? ".h5" : "";
}

}  // namespace

SnapshotLinks::SnapshotLinks(const caffe::SolverParameter& solver, FileOps& ops)
    : ops_(ops),
      best_(Join(solver.snapshot_prefix(), "_best.caffemodel", FormatSuffix(solver))),
      last_(Join(solver.snapshot_prefix(), "_last.solverstate", FormatSuffix(solver))),
      averages_(solver.ema_decay() > 0) {}

void SnapshotLinks::SetLast(const SnapshotNames& names) { Set(last_, names.state); }

void SnapshotLinks::SetBest(const SnapshotNames& names) {
  Set(best_, averages_ ? names.averaged : names.model);
}

void SnapshotLinks::RemoveBest() {
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  if (!fs::is_symlink(fs::symlink_status(best_, ignored))) return;
  if (ops_.Unlink(best_) != 0 && errno != ENOENT) Warn(best_, std::strerror(errno));
}

// The new link is made under a temporary name and renamed, because a link cannot be changed.
void SnapshotLinks::Set(const std::string& link, const std::string& target) {
  const std::lock_guard lock(mutex_);
  const std::string name = FileNameOf(target);
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(link, ignored);
  if (fs::is_symlink(status)) {
    if (fs::read_symlink(link, ignored) == name) return;
  } else if (fs::exists(status)) {
    return Warn(link, "a file that is not a link has this name");
  }
  const std::string temp = TempPathFor(link);
  ops_.Unlink(temp);
  if (ops_.Symlink(name, temp) == 0 && ops_.Rename(temp, link) == 0) return;
  const int error = errno;
  ops_.Unlink(temp);
  Warn(link, std::strerror(error));
}

void SnapshotLinks::Warn(const std::string& link, const std::string& why) {
  if (warned_) return;
  warned_ = true;
  LOG(WARNING) << EscapeControl(Join("Cannot make the link '", link, "': ", why,
                                     "; the snapshots themselves are complete, and --resume=auto "
                                     "finds the newest"));
}

}  // namespace trainer
