#pragma once
// Decides which snapshots of a run are kept (keep_last, keep_best), and keeps the links to the
// newest and to the best one.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "snapshot_links.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/observer.h"
#include "trainer/monitor/test_score.h"

namespace trainer {

// The training thread notes tests and reads the best ones; the thread that writes snapshots removes
// old ones. Only files of this run are removed (this process wrote them or Resume found them), and
// only if they are older than a snapshot that was just written and read back.
//
// The link <snapshot_prefix>_best exists if the solver compares tests (keep_best or patience). It
// points to the kept snapshot with the best score.
class SnapshotRetention {
 public:
  // `spec` must outlive the object. `outputs` are the names of the outputs of the first test net.
  // Throws kConfig if best_output is not one of them.
  SnapshotRetention(const SolverSpec& spec, const std::vector<std::string>& outputs,
                    FileOps& ops = FileOps::Posix());

  // Finds the snapshots that earlier processes of the run wrote up to `state`, their newest one,
  // and the scores of these snapshots. A file belongs to the run if it is undamaged and has the
  // run's seed and update rule.
  void Resume(const caffe::SolverState& state);
  // Notes the result of a test of the first test net. It is the score of the snapshot of that
  // iteration, and of later ones until the next test.
  void NoteTest(const TestReport& report);
  // Called when the snapshot of iteration `iter` begins. Writes the list of the best snapshots into
  // its state.
  void Begin(int iter, caffe::SolverState* state);
  // Called when the snapshot is on the disk. Moves the links, then removes the snapshots that are
  // not kept and logs a line for each.
  void Written(const SnapshotNames& names);

 private:
  std::vector<int> Best(const std::vector<int>& iters) const;
  // Returns the snapshots on the disk that a new one of iteration `newest` supersedes.
  std::vector<SnapshotNames> Superseded(int newest) const;
  // Links to the best of the snapshots on the disk other than `leaving`, which are about to be
  // removed.
  void LinkBest(const std::vector<SnapshotNames>& leaving);
  bool Remove(const SnapshotNames& names) const;

  FileOps& ops_;
  const caffe::SolverParameter& solver_;
  const std::string prefix_;
  const int keep_last_, keep_best_;
  SnapshotLinks links_;
  std::optional<TestScore> score_;  // nullopt without keep_best and patience
  std::mutex mutex_;
  std::map<int, SnapshotNames> own_;  // on the disk, by iteration
  std::map<int, float> scores_;       // also of the snapshot that is being written
  bool tested_ = false;
  int test_iter_ = -1;
  float test_value_ = 0;
  int begun_ = -1;
};

}  // namespace trainer
