#include "snapshot_retention.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>

#include "score_field.h"
#include "snapshot_manager.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
SnapshotRetention::SnapshotRetention(const SolverSpec& spec,
                                     const std::vector<std::string>& outputs, FileOps& ops)
    : ops_(ops),
      solver_(spec.proto),
      prefix_(spec.proto.snapshot_prefix()),
      keep_last_(spec.proto.keep_best() > 0 ? std::max(1, spec.proto.keep_last())
                                            : spec.proto.keep_last()),
      keep_best_(spec.proto.keep_best()),
      links_(spec.proto, ops) {
  if (keep_best_ > 0) {
    score_ = ScoreFor("keep_best", spec, outputs);
  } else if (spec.proto.patience() > 0) {
    score_ = ScoreFor("patience", spec, outputs);
  }
}

void SnapshotRetention::Resume(const caffe::SolverState& state) {
  std::map<int, SnapshotNames> found;
  // If none is removed, only the best one matters, and no file needs to be read.
  for (int i = 0; keep_last_ == 0 && score_ && i < state.best_size(); ++i) {
    const SnapshotNames names = SnapshotNamesAt(solver_, state.best(i).iter());
    if (Exists(names.state)) found.emplace(names.iter, names);
  }
  for (const SnapshotNames& names :
       keep_last_ == 0 ? std::vector<SnapshotNames>() : FindSnapshots(prefix_)) {
    if (names.iter > state.iter()) continue;
    try {
      const caffe::SolverState other = ReadStateAlone(names.state);
      if (other.random_seed() == state.random_seed() &&
          other.solver_type() == state.solver_type() && other.has_random_seed()) {
        found.emplace(names.iter, names);
      }
    } catch (const Error&) {  // the owner of an unreadable state is unknown, so it is kept
    }
  }
  const std::lock_guard lock(mutex_);
  own_ = std::move(found);
  for (const caffe::ScoredSnapshot& best : state.best()) {
    if (own_.contains(best.iter())) scores_[best.iter()] = best.value();
  }
}

void SnapshotRetention::NoteTest(const TestReport& report) {
  const ReportedValue* const value = score_ ? score_->In(report) : nullptr;
  if (value == nullptr || report.iter == 0) return;  // at iteration 0 this run has trained nothing
  const std::lock_guard lock(mutex_);
  tested_ = true;
  test_iter_ = report.iter;
  test_value_ = value->value;
  if (own_.contains(test_iter_) || begun_ == test_iter_) scores_[test_iter_] = test_value_;
  if (own_.contains(test_iter_)) LinkBest({});
}

// Returns the `keep_best` best of the `iters` that have a score, best first; of equal scores the
// earlier iteration counts as better.
std::vector<int> SnapshotRetention::Best(const std::vector<int>& iters) const {
  std::vector<int> best;
  for (const int iter : iters) {
    if (scores_.contains(iter)) best.push_back(iter);
  }
  std::ranges::sort(best, [this](int a, int b) {
    const float x = scores_.at(a), y = scores_.at(b);
    return score_->Better(x, y) || (!score_->Better(y, x) && a < b);
  });
  if (best.size() > static_cast<size_t>(keep_best_)) best.resize(static_cast<size_t>(keep_best_));
  return best;
}

void SnapshotRetention::Begin(int iter, caffe::SolverState* state) {
  if (!score_) return;
  const std::lock_guard lock(mutex_);
  begun_ = iter;
  if (tested_) scores_[iter] = test_value_;
  std::vector<int> iters = {iter};
  for (const auto& [own, names] : own_) {
    if (own != iter) iters.push_back(own);
  }
  for (const int best : Best(iters)) {
    caffe::ScoredSnapshot* entry = state->add_best();
    entry->set_iter(best);
    entry->set_value(scores_.at(best));
  }
}

// Renames the weights to names of temporary files before it removes the state, because the next run
// removes such files. A kill at any point then leaves no weights without a state, which would look
// like the user's own files.
bool SnapshotRetention::Remove(const SnapshotNames& names) const {
  const auto failed = [](const std::string& file, int result) {
    if (result == 0 || errno == ENOENT) return false;
    LOG(WARNING) << EscapeControl(Join("Cannot remove the older snapshot '", file,
                                       "': ", std::strerror(errno), "; the file is kept"));
    return true;
  };
  const std::array weights = {names.model, names.averaged};
  for (const std::string& file : weights) {
    if (failed(file, ops_.Rename(file, TempPathFor(file)))) return false;
  }
  if (failed(names.state, ops_.Unlink(names.state))) {
    for (const std::string& file : weights) ops_.Rename(TempPathFor(file), file);
    return false;
  }
  for (const std::string& file : weights) {
    if (failed(file, ops_.Unlink(TempPathFor(file)))) return false;
  }
  LOG(INFO) << EscapeControl(Join("Removed the snapshot of iteration ", names.iter, ", ",
                                  names.state, " (keep_last: ", keep_last_, ")"));
  return true;
}

std::vector<SnapshotNames> SnapshotRetention::Superseded(int newest) const {
  std::vector<SnapshotNames> superseded;
  if (keep_last_ == 0) return superseded;
  std::vector<int> iters;
  for (const auto& [iter, own] : own_) iters.push_back(iter);
  std::set<int> kept = {newest};
  for (const int iter : Best(iters)) kept.insert(iter);
  const size_t last = std::min(iters.size(), static_cast<size_t>(keep_last_));
  kept.insert(iters.end() - static_cast<std::ptrdiff_t>(last), iters.end());
  for (const auto& [iter, own] : own_) {
    if (iter < newest && !kept.contains(iter)) superseded.push_back(own);
  }
  return superseded;
}

void SnapshotRetention::LinkBest(const std::vector<SnapshotNames>& leaving) {
  const SnapshotNames* best = nullptr;
  for (const auto& [iter, names] : own_) {
    const auto score = scores_.find(iter);
    if (score == scores_.end() || std::isnan(score->second)) continue;
    if (std::ranges::count(leaving, iter, &SnapshotNames::iter) > 0) continue;
    if (best == nullptr || score_->Better(score->second, scores_.at(best->iter))) best = &names;
  }
  if (best == nullptr) return links_.RemoveBest();
  links_.SetBest(*best);
}

void SnapshotRetention::Written(const SnapshotNames& names) {
  links_.SetLast(names);
  std::vector<SnapshotNames> superseded;
  {
    const std::lock_guard lock(mutex_);
    own_[names.iter] = names;
    superseded = Superseded(names.iter);
    LinkBest(superseded);
  }
  std::vector<int> removed;
  for (const SnapshotNames& old : superseded) {
    if (Remove(old)) removed.push_back(old.iter);
  }
  if (!removed.empty()) {
    try {
      SyncFolder(FolderOf(names.state));
    } catch (const Error&) {  // the removed files may come back after a power failure
    }
  }
  const std::lock_guard lock(mutex_);
  for (const int iter : removed) {
    own_.erase(iter);
    scores_.erase(iter);
  }
}

}  // namespace trainer
