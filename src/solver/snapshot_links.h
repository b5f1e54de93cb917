#pragma once
// Links with fixed names, so that scripts need no iteration numbers: <prefix>_last.solverstate to
// the newest snapshot and, with keep_best or patience, <prefix>_best.caffemodel to the weights of
// the best snapshot that is kept.

#include <mutex>
#include <string>

#include "solver.pb.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/checkpoint/snapshot_files.h"

namespace trainer {

// The links are relative and are replaced atomically, so a reader always finds a complete file. A
// failure is a warning, once, because some file systems have no links. A file of the same name that
// is not a link belongs to the user and stays. Any thread may call the members.
class SnapshotLinks {
 public:
  // `ops` must outlive the object.
  SnapshotLinks(const caffe::SolverParameter& solver, FileOps& ops);

  // Links to the state of the newest snapshot, which is on the disk.
  void SetLast(const SnapshotNames& names);
  // Links to the weights that the best test used: the averaged ones if the run averages.
  void SetBest(const SnapshotNames& names);
  // Removes the link to the best weights, which an earlier run may have left.
  void RemoveBest();

 private:
  void Set(const std::string& link, const std::string& target);
  // Warns that `link` cannot be made or removed, unless a warning was logged before.
  void Warn(const std::string& link, const std::string& why);

  FileOps& ops_;
  const std::string best_, last_;  // the paths of the links
  const bool averages_;
  std::mutex mutex_;
  bool warned_ = false;
};

}  // namespace trainer
