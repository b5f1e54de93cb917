#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "support/wrapped_device.h"

namespace trainer {

// The tests' device as one that runs as late as possible: copies of a CopyStream or an
// AsyncReadback arrive when the host waits for them, and the test fails if the host memory of an
// upload changed meanwhile. Counts uploads, and the host's waits for work that it queued since
// NewStep; a host waits for earlier work to keep in step with its device.
class LateDevice : public WrappedDevice {
 public:
  explicit LateDevice(bool prefers_bytes = true) : prefers_bytes_(prefers_bytes) {}

  bool IsAsync() const override { return true; }
  bool PrefersUint8() const override { return prefers_bytes_; }
  void* Allocate(size_t bytes) const override {
    ++allocations;
    return WrappedDevice::Allocate(bytes);
  }
  void CopyToDevice(void* to, const void* host, size_t bytes) const override {
    ++direct_copies;
    WrappedDevice::CopyToDevice(to, host, bytes);
  }
  void CopyToHost(void* host, const void* from, size_t bytes) const override {
    ++waits;
    WrappedDevice::CopyToHost(host, from, bytes);
  }
  void Synchronize() const override {
    ++waits;
    WrappedDevice::Synchronize();
  }
  std::unique_ptr<CopyStream> NewCopyStream() const override {
    return std::make_unique<LateCopies>(*this);
  }
  std::unique_ptr<AsyncReadback> NewReadback() const override {
    return std::make_unique<LateRead>(*this);
  }

  void NewStep() const {
    waits = direct_copies = allocations = 0;
    queued_bytes = 0;
    ++step_;
  }
  mutable int waits = 0, direct_copies = 0, allocations = 0;
  mutable size_t queued_bytes = 0;  // by CopyStreams
  mutable int unfinished = 0;       // copies that are queued and not done

 private:
  static uint64_t SumOf(const void* host, size_t bytes) {
    const auto* const begin = static_cast<const unsigned char*>(host);
    return std::accumulate(begin, begin + bytes, uint64_t{bytes},
                           [](uint64_t sum, unsigned char byte) { return sum * 31 + byte; });
  }

  class LateCopies final : public CopyStream {
   public:
    explicit LateCopies(const LateDevice& device) : device_(device) { copies_.reserve(64); }
    ~LateCopies() override { WaitForCopies(); }
    void CopyToDevice(void* to, const void* host, size_t bytes) override {
      copies_.push_back({to, host, bytes, SumOf(host, bytes), device_.step_});
      device_.queued_bytes += bytes;
      ++device_.unfinished;
    }
    void ComputeWaitsForCopies() override {
      for (Copy& copy : copies_) Finish(copy);
    }
    void CopiesWaitForCompute() override {}
    void WaitForCopies() override {
      for (Copy& copy : copies_) {
        Finish(copy);
        if (copy.step == device_.step_) ++device_.waits;
        EXPECT_EQ(SumOf(copy.host, copy.bytes), copy.sum) << "changed before the copy was done";
      }
      copies_.clear();
    }

   private:
    struct Copy {
      void* to;
      const void* host;
      size_t bytes;
      uint64_t sum;
      int step;
      bool done = false;
    };
    void Finish(Copy& copy) {
      if (copy.done) return;
      EXPECT_EQ(SumOf(copy.host, copy.bytes), copy.sum) << "changed before it was copied";
      device_.WrappedDevice::CopyToDevice(copy.to, copy.host, copy.bytes);
      copy.done = true;
      --device_.unfinished;
    }
    const LateDevice& device_;
    std::vector<Copy> copies_;
  };

  class LateRead final : public AsyncReadback {
   public:
    explicit LateRead(const LateDevice& device) : device_(device) {}
    ~LateRead() override { Wait(); }
    void Start(void* host, const void* from, size_t bytes) override {
      EXPECT_EQ(host_, nullptr) << "the read before was not waited for";
      values_.resize(bytes);
      device_.WrappedDevice::CopyToHost(values_.data(), from, bytes);
      host_ = host;
      std::memset(host_, 0xff, bytes);
      step_ = device_.step_;
    }
    void Wait() override {
      if (host_ == nullptr) return;
      std::memcpy(host_, values_.data(), values_.size());
      host_ = nullptr;
      if (step_ == device_.step_) ++device_.waits;
    }

   private:
    const LateDevice& device_;
    std::vector<std::byte> values_;
    void* host_ = nullptr;
    int step_ = 0;
  };

  bool prefers_bytes_;
  mutable int step_ = 0;
};

}  // namespace trainer
