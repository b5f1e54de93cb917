#pragma once
// Chooses the implementation of a primitive. Each kind of device has an ordered list of candidates
// per family; a convolution has one list per direction. A candidate accepts a description or
// declines with a reason, and the first that accepts is chosen: own kernels where they are faster
// than the library, then the library, and finally plain loops that accept everything. The choice
// depends only on the description, the processor and the number of threads. Candidates are not
// timed, so that two runs add in the same order.
//
// A candidate registers itself from its own source file, with a static object:
//   const RegisterKernel<ConvDesc, ConvForward> kMine(
//       {DeviceKind::kCpu, priority::kOwn + 5, "mine", TakeMine});

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/base/text/text.h"

namespace trainer {

// Candidates with a lower priority value are tried first. The values within a list are unique.
namespace priority {
inline constexpr int kOwn = 100, kLibrary = 500, kReference = 1000;
}

// The reason why a candidate declines a description, as the end of a sentence: "the stride is 2".
struct Unsupported {
  std::string reason;
};

// The answer of a candidate (a function Take...): the implementation, or the reason why it
// declines. Converts to true if there is an implementation.
template <class Made>
class KernelOrReason {
 public:
  template <class T>
  KernelOrReason(std::unique_ptr<T> made) : made_(std::move(made)) {}
  KernelOrReason(Unsupported why) : reason_(std::move(why.reason)) {}

  explicit operator bool() const { return made_ != nullptr; }
  // Returns the implementation and gives up ownership; null if the candidate declined.
  std::unique_ptr<Made> Take() { return std::move(made_); }
  const std::string& reason() const { return reason_; }

 private:
  std::unique_ptr<Made> made_;
  std::string reason_;
};

// A candidate: `make` returns the implementation for a description, or the reason why it declines.
template <class Desc, class Made>
struct KernelEntry {
  DeviceKind device;
  int priority;
  std::string name;
  KernelOrReason<Made> (*make)(const Device& device, const Desc& desc);
};

// The chosen implementation, and "name: reason" for each candidate that was tried before it and
// declined.
template <class Made>
struct ChosenKernel {
  std::unique_ptr<Made> made;
  std::vector<std::string> declined;
};

namespace kernel_registry_internal {

// Throws kInternal for two candidates of a device with the same priority.
[[noreturn]] void FailForTwoOfARank(const std::string& name, const std::string& other);
// Throws kUnavailable with the reasons in `declined`.
[[noreturn]] void FailForNone(std::string_view what, const std::vector<std::string>& declined);
// Returns whether LogChoice prints anything (--v=1).
bool LogsChoices();
// Logs the chosen candidate `name`, and each candidate that declined with its reason.
void LogChoice(std::string_view what, const std::string& desc, const std::string& name,
               const std::vector<std::string>& declined);

}  // namespace kernel_registry_internal

// Describes an operation in a few words for the log.
std::string Describe(const GemmDesc& desc);
// Describes a convolution for the log: shapes, type, kernel, stride and groups.
std::string Describe(const ConvDesc& desc);
std::string Describe(const PoolDesc& desc);
std::string Describe(const LrnDesc& desc);

// The candidates for Made of all devices. Filled by one thread before main() and read-only
// afterwards.
template <class Desc, class Made>
class KernelRegistry {
 public:
  using One = KernelEntry<Desc, Made>;

  static KernelRegistry& Get() {
    static KernelRegistry all;
    return all;
  }

  // Inserts a candidate by device and priority. Throws kInternal if the priority is taken.
  void Add(One one) {
    const auto key = [](const One& c) { return std::pair(c.device, c.priority); };
    const auto at = std::ranges::lower_bound(all_, key(one), {}, key);
    if (at != all_.end() && key(*at) == key(one)) {
      kernel_registry_internal::FailForTwoOfARank(one.name, at->name);
    }
    all_.insert(at, std::move(one));
  }

  // Returns all candidates, sorted by device and priority.
  const std::vector<One>& all() const { return all_; }

  // Returns the first candidate of `device` that accepts `desc`. `what` is for messages:
  // "convolution, forward". Throws kUnavailable with all reasons if every candidate declines.
  ChosenKernel<Made> Choose(const Device& device, const Desc& desc, std::string_view what) const {
    ChosenKernel<Made> chosen;
    for (const One& one : all_) {
      if (one.device != device.kind()) continue;
      KernelOrReason<Made> offer = one.make(device, desc);
      if (!offer) {
        chosen.declined.push_back(Join(one.name, ": ", offer.reason()));
        continue;
      }
      chosen.made = offer.Take();
      if (kernel_registry_internal::LogsChoices()) {
        kernel_registry_internal::LogChoice(what, Describe(desc), one.name, chosen.declined);
      }
      return chosen;
    }
    kernel_registry_internal::FailForNone(what, chosen.declined);
  }

 private:
  std::vector<One> all_;
};

// Adds a candidate in its constructor.
template <class Desc, class Made>
struct RegisterKernel {
  explicit RegisterKernel(KernelEntry<Desc, Made> one) {
    KernelRegistry<Desc, Made>::Get().Add(std::move(one));
  }
};

// Chooses the primitive of a family whose candidates are whole primitives.
template <class Made, class Desc>
std::unique_ptr<Made> ChoosePrimitive(const Device& device, const Desc& desc,
                                      std::string_view what) {
  ChosenKernel<Made> chosen = KernelRegistry<Desc, Made>::Get().Choose(device, desc, what);
  chosen.made->set_skipped_kernels(std::move(chosen.declined));
  return std::move(chosen.made);
}

}  // namespace trainer
