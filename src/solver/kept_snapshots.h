#pragma once
// Which snapshots of a run stay: keep_last, keep_best.

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

// The trainer's thread notes tests and reads the best; the one that writes snapshots removes old
// ones. What is removed are files of this run alone, older than a snapshot that was just written
// and read back: those that this process wrote, and those that Adopt found.
class KeptSnapshots {
 public:
  // `outputs`: the names of the outputs of the first test net. Throws kConfig for a best_output
  // that is none of them.
  KeptSnapshots(const SolverSpec& spec, const std::vector<std::string>& outputs,
                FileOps& ops = FileOps::Posix());

  // Takes over what earlier processes of the run, whose newest snapshot is `state`, wrote before
  // it, and their scores. A file counts as the run's when it is undamaged and has its seed and
  // update rule.
  void Adopt(const caffe::SolverState& state);
  // What the first test net gave at an iteration: the score of a snapshot of the same iteration,
  // and of later ones until the next test.
  void NoteTest(const TestReport& report);
  // A snapshot of this iteration begins. Writes the list of the best into its state.
  void Begin(int iter, caffe::SolverState* state);
  // It is on the disk: removes what need not stay, with a line in the log for each.
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
