#include "deadline_reserve.h"

#include <algorithm>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// A snapshot is written and then read back for verification; a busy network file system manages
// about this rate for both together.
constexpr double kBytesPerSecond = 50e6;
constexpr double kLeastSnapshot = 1;  // seconds, because even a small file must be flushed
constexpr double kMargin = 2, kMarginFraction = 0.25;

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

float Rounded(double seconds) {
  return static_cast<float>(static_cast<int64_t>(seconds * 100 + 0.5)) / 100;
}

}  // namespace

DeadlineReserve::DeadlineReserve(std::optional<Time> end, uint64_t snapshot_bytes)
    : end_(end),
      estimate_(kLeastSnapshot + static_cast<double>(snapshot_bytes) / kBytesPerSecond) {}

void DeadlineReserve::NoteIteration(double seconds) {
  iterations_[next_] = seconds;
  next_ = (next_ + 1) % iterations_.size();
}

void DeadlineReserve::NoteTest(double seconds) { test_ = std::max(test_, seconds); }

void DeadlineReserve::NoteSnapshot(double seconds) {
  snapshot_ = std::max(snapshot_.value_or(0), seconds);
}

double DeadlineReserve::LongestIteration() const { return std::ranges::max(iterations_); }

bool DeadlineReserve::IsUp(Time now, int snapshots, bool in_test) const {
  if (!end_) return false;
  const double work = in_test ? 0 : LongestIteration() + test_;
  const double reserve = (work + snapshots * SnapshotSeconds()) * (1 + kMarginFraction) + kMargin;
  return Seconds(*end_ - now) <= reserve;
}

std::chrono::milliseconds DeadlineReserve::SnapshotReserve() const {
  const double seconds = SnapshotSeconds() * (1 + kMarginFraction) + kMargin;
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::optional<DeadlineReserve::Time> DeadlineReserve::LastTry() const {
  return end_ ? std::optional(*end_ - SnapshotReserve()) : std::nullopt;
}

std::string DeadlineReserve::Describe(Time now) const {
  if (!end_) return "";
  return Join(Rounded(std::max(0.0, Seconds(*end_ - now))),
              " s are left; the longest iteration took ", Rounded(LongestIteration()),
              " s, a test ", Rounded(test_), " s, a snapshot ", Rounded(SnapshotSeconds()), " s");
}

}  // namespace trainer
