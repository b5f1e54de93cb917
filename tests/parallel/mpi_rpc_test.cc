// Questions and replies between ranks, with messages in memory.

#include "mpi/mpi_rpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace trainer {
namespace {

// Messages in flight between two ranks, by receiver.
struct Wire {
  std::deque<Rpc::Bytes> to[2];
  size_t longest = 0, messages = 0;
};

class WiredMpi final : public Mpi {
 public:
  WiredMpi(Wire& wire, int rank) : wire_(wire), rank_(rank) {}
  int rank() const override { return rank_; }
  int count() const override { return 2; }
  std::string Version() override { return "wired"; }
  std::vector<std::string> AllGather(const std::string&) override { return {}; }
  void AllReduce(std::span<float>) override {}
  void Send(std::span<const std::byte>, int, int) override {}
  void Receive(std::span<std::byte>, int, int) override {}
  bool AllDone(int*) override { return true; }
  void SendDetached(std::vector<std::byte> bytes, int rank, int) override {
    wire_.longest = std::max(wire_.longest, bytes.size());
    ++wire_.messages;
    wire_.to[rank].push_back(std::move(bytes));
  }
  bool TryReceive(int, int* rank, std::vector<std::byte>* bytes) override {
    auto& own = wire_.to[rank_];
    if (own.empty()) return false;
    *rank = 1 - rank_;
    *bytes = std::move(own.front());
    own.pop_front();
    return true;
  }
  bool SendsDone() override { return true; }
  void SendHeartbeat(int) override {}
  bool DrainHeartbeats(int) override { return false; }
  void Finish() override {}
  void Abort(int) override {}

 private:
  Wire& wire_;
  int rank_;
};

Rpc::Bytes Counted(size_t size, size_t first) {
  Rpc::Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((first + i) % 251);
  return bytes;
}

class MpiPostTest : public testing::Test {
 protected:
  static constexpr size_t kMost = 100, kLabel = 16;  // bytes of a payload and of its label

  // Returns the reply to a question of `size` bytes; the reply is twice as long.
  Rpc::Bytes Call(size_t size) {
    const uint64_t call = asks_.CallAsync(1, method_, Counted(size, 7));
    asks_.Poll();
    handlers_.Poll();
    asks_.Poll();
    return asks_.Wait(call);
  }

  Wire wire_;
  WiredMpi mpi_[2] = {{wire_, 0}, {wire_, 1}};
  RankStatus statuses_[2] = {};
  MpiRpc asks_{mpi_[0], statuses_[0], [] {}, [] {}, kMost};
  MpiRpc handlers_{mpi_[1], statuses_[1], [] {}, [] {}, kMost};
  std::vector<Rpc::Bytes> asked_;
  int method_ = handlers_.Register([this](int, std::span<const std::byte> request, auto* reply) {
    asked_.emplace_back(request.begin(), request.end());
    *reply = Counted(2 * request.size(), 3);
    return true;
  });
};

TEST_F(MpiPostTest, CarriesWhatIsLongerThanAMessageInParts) {
  for (const size_t size : {0u, 1u, 50u, 99u, 100u, 101u, 200u, 201u, 12345u}) {
    asked_.clear();
    wire_.messages = 0;
    EXPECT_EQ(Call(size), Counted(2 * size, 3)) << size;
    ASSERT_EQ(asked_.size(), 1u) << size;
    EXPECT_EQ(asked_[0], Counted(size, 7)) << size;
    const auto messages = [](size_t bytes) { return bytes == 0 ? 1 : (bytes + kMost - 1) / kMost; };
    EXPECT_EQ(wire_.messages, messages(size) + messages(2 * size)) << size;
  }
  EXPECT_EQ(wire_.longest, kMost + kLabel);
}

TEST_F(MpiPostTest, KeepsQuestionsInTheirOrder) {
  std::vector<uint64_t> calls;
  for (const size_t size : {250u, 3u, 120u}) {
    calls.push_back(asks_.CallAsync(1, method_, Counted(size, size)));
  }
  asks_.Poll();
  handlers_.Poll();
  asks_.Poll();
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_EQ(asked_[0], Counted(250, 250));
  EXPECT_EQ(asked_[1], Counted(3, 3));
  EXPECT_EQ(asked_[2], Counted(120, 120));
  for (const uint64_t call : calls) EXPECT_FALSE(asks_.Wait(call).empty());
}

}  // namespace
}  // namespace trainer
