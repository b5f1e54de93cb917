#pragma once
// Which snapshots of a run are kept: keep_last, keep_best.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/observer.h"
#include "trainer/monitor/test_score.h"

namespace trainer {

// The training thread notes tests and reads the best; the thread that writes snapshots removes old
// ones. It removes only files of this run that are older than a snapshot that was just written and
// read back: those that this process wrote, and those that Resume found.
class SnapshotRetention {
 public:
  // `outputs`: the names of the outputs of the first test net. Throws kConfig for a best_output
  // that is none of them.
  SnapshotRetention(const SolverSpec& spec, const std::vector<std::string>& outputs,
                    FileOps& ops = FileOps::Posix());

  // Finds what earlier processes of the run wrote before `state`, their newest snapshot, and their
  // scores. A file belongs to the run if it is undamaged and has the run's seed and update rule.
  void Resume(const caffe::SolverState& state);
  // Notes the result of the first test net at an iteration. It is the score of a snapshot of that
  // iteration, and of later ones until the next test.
  void NoteTest(const TestReport& report);
  // Called when a snapshot of this iteration begins. Writes the list of the best into its state.
  void Begin(int iter, caffe::SolverState* state);
  // Called when the snapshot is on the disk: removes what is not kept, with a line in the log for
  // each.
  void Written(const SnapshotNames& names);

 private:
  std::vector<int> Best(const std::vector<int>& iters) const;
  bool Remove(const SnapshotNames& names) const;

  FileOps& ops_;
  const std::string prefix_;
  const int keep_last_, keep_best_;
  std::optional<TestScore> score_;  // nothing where snapshots are not compared
  std::mutex mutex_;
  std::map<int, SnapshotNames> own_;  // on the disk, by iteration
  std::map<int, float> scores_;       // of those, and of the one that is being written
  bool tested_ = false;
  int test_iter_ = -1;
  float test_value_ = 0;
  int begun_ = -1;
};

}  // namespace trainer
