#include "host_communicator.h"

#include <algorithm>

#include "trainer/base/thread/spin.h"

namespace trainer {

// Measures the time that the training thread spends in a call.
class HostCommunicator::Spent {
 public:
  explicit Spent(HostCommunicator& exchange) : communicator_(exchange) {}
  ~Spent() { communicator_.spent_ += MonotonicNs() - begin_; }
  Spent(const Spent&) = delete;
  Spent& operator=(const Spent&) = delete;

 private:
  HostCommunicator& communicator_;
  int64_t begin_ = MonotonicNs();
};

// Adds the slice to the open bucket, which is submitted when it has reached the size of SetBucket,
// or first if the slice does not follow it in memory. Slice 0 begins a new pass.
void HostCommunicator::OnGradientReady(int slice, std::span<float> values) {
  const Spent spent(*this);
  status_.progress.fetch_add(1, std::memory_order_relaxed);
  if (slice == 0) sum_of_.clear();
  if (bucket_.data() + bucket_.size() != values.data()) Flush();
  bucket_ = bucket_.empty() ? values : std::span(bucket_.data(), bucket_.size() + values.size());
  sum_of_.push_back(pushed_ + 1);
  if (bucket_.size() >= bucket_size_) Flush();
  progress_.Poll();
}

// Submits the open bucket, if there is one.
void HostCommunicator::Flush() {
  if (bucket_.empty()) return;
  progress_.Submit(bucket_);
  ++pushed_;
  bucket_ = {};
}

// Submits the open bucket first, because it may hold the slice.
void HostCommunicator::WaitGradient(int slice) {
  const Spent spent(*this);
  Flush();
  progress_.WaitFor(sum_of_[static_cast<size_t>(slice)]);
}

// Submits the open bucket first, because all ranks must reduce in one order.
void HostCommunicator::AllReduce(std::span<float> values) {
  const Spent spent(*this);
  status_.progress.fetch_add(1, std::memory_order_relaxed);
  Flush();
  if (values.empty()) return;
  progress_.Submit(values);
  progress_.WaitFor(++pushed_);
}

// Writes to this rank's status, which the watchdogs of the node read.
void HostCommunicator::Heartbeat(int iterations) {
  status_.iterations.store(iterations, std::memory_order_relaxed);
  status_.progress.fetch_add(1, std::memory_order_relaxed);
}

// Gathers texts by all-reduces: each rank gives its own characters where the others give zeros,
// three bytes per float, which holds them exactly.
std::vector<std::string> HostCommunicator::Gather(const std::string& own) {
  constexpr size_t kBytes = 3;
  const auto ranks = static_cast<size_t>(topology_.rank.size);
  const auto self = static_cast<size_t>(topology_.rank.rank);
  std::vector<float> lengths(ranks * 2);
  lengths[self * 2] = static_cast<float>(own.size() & 0xffffff);
  lengths[self * 2 + 1] = static_cast<float>(own.size() >> 24);
  AllReduce(lengths);
  std::vector<std::string> texts(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    const size_t length =
        static_cast<size_t>(lengths[rank * 2]) + (static_cast<size_t>(lengths[rank * 2 + 1]) << 24);
    std::vector<float> numbers((length + kBytes - 1) / kBytes);
    for (size_t i = 0; i < own.size() && rank == self; ++i) {
      numbers[i / kBytes] +=
          static_cast<float>(static_cast<unsigned char>(own[i]) << (8 * (i % kBytes)));
    }
    AllReduce(numbers);
    if (self != 0) continue;
    texts[rank].resize(length);
    for (size_t i = 0; i < length; ++i) {
      texts[rank][i] =
          static_cast<char>(static_cast<int>(numbers[i / kBytes]) >> (8 * (i % kBytes)));
    }
  }
  if (self != 0) texts.clear();
  return texts;
}

}  // namespace trainer
