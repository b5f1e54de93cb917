#include "support/emulated_gpu/state.h"

#include <cstdlib>
#include <vector>

namespace emulated_gpu {
namespace {

struct Injection {
  CallKind kind;
  int calls_before;
  int error;
  bool breakdown;
};

struct State {
  std::recursive_mutex mutex;
  Options options;
  Counters counters;
  Random random;
  std::vector<std::string> problems;
  std::vector<Injection> injections;
  int broken = 0, breakdown = 0;
  bool counts_bytes = false;

  State() {
    const char* const seed = std::getenv("TRAINER_EMULATED_GPU_SEED");
    random.Seed(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
  }
};

State& Get() {
  static State* const state = new State;  // never destroyed: other static objects may use it
  return *state;
}

thread_local int last_error = 0;
thread_local int current_device = 0;

// Returns the error of this call, or 0. A call with an injected breakdown succeeds.
int Inject(CallKind kind) {
  State& state = Get();
  int error = 0;
  for (size_t i = 0; i < state.injections.size();) {
    Injection& in = state.injections[i];
    if (in.kind != kind || in.calls_before-- > 0) {
      ++i;
      continue;
    }
    (in.breakdown ? state.breakdown : error) = in.error;
    state.injections.erase(state.injections.begin() + static_cast<int64_t>(i));
  }
  return error;
}

}  // namespace

std::recursive_mutex& Mutex() { return Get().mutex; }
Random& TheRandom() { return Get().random; }
const Options& TheOptions() { return Get().options; }
const DeviceOptions& OptionsOf(int device) {
  static const DeviceOptions none = {.memory_bytes = 0};
  const auto& devices = Get().options.devices;
  const auto index = static_cast<size_t>(device);
  return index < devices.size() ? devices[index] : none;
}
Counters& TheCounters() { return Get().counters; }
bool CountsBytes() { return Get().counts_bytes; }

uint64_t Random::Next() {  // splitmix64
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void AddProblem(const std::string& sentence) {
  const std::scoped_lock lock(Mutex());
  if (Get().problems.size() < 100) Get().problems.push_back(sentence);
}

Call::Call(CallKind kind) : lock_(Mutex()) {
  error_ = Get().broken != 0 ? Get().broken : Inject(kind);
  if (error_ != 0 && kind != CallKind::kLibrary) last_error = error_;
}

bool Call::Refused() const { return error_ != 0 && Get().broken == 0; }

int Fail(int error) { return last_error = error; }

int Fail(int error, const std::string& sentence) {
  AddProblem(sentence);
  return Fail(error);
}

int LastError(bool clear) {
  const std::scoped_lock lock(Mutex());
  if (Get().broken != 0) return Get().broken;
  const int error = last_error;
  if (clear) last_error = 0;
  return error;
}

void Break(int error) {
  if (Get().broken == 0) Get().broken = error;
}

int Broken() { return Get().broken; }

void NoticeBreakdown() {
  if (Get().breakdown != 0) Break(Get().breakdown);
}

int CurrentDevice() { return current_device; }
void SetCurrentDevice(int device) { current_device = device; }

namespace state_internal {

// Resets the state in this file.
void ResetState(const Options& options) {
  State& state = Get();
  state.options = options;
  state.counters = {};
  state.problems.clear();
  state.injections.clear();
  state.broken = state.breakdown = 0;
  state.counts_bytes = false;
  last_error = 0;
  current_device = 0;
}

}  // namespace state_internal

void SetSeed(uint64_t seed) {
  const std::scoped_lock lock(Mutex());
  Get().random.Seed(seed);
}

std::vector<std::string> Problems() {
  const std::scoped_lock lock(Mutex());
  return Get().problems;
}

void ClearProblems() {
  const std::scoped_lock lock(Mutex());
  Get().problems.clear();
}

void InjectError(CallKind kind, int n, int error) {
  const std::scoped_lock lock(Mutex());
  Get().injections.push_back({kind, n, error, false});
}

void InjectBreakdown(CallKind kind, int n, int error) {
  const std::scoped_lock lock(Mutex());
  Get().injections.push_back({kind, n, error, true});
}

void SetStickyError(int error) {
  const std::scoped_lock lock(Mutex());
  Get().broken = error;
}

Counters Count() {
  const std::scoped_lock lock(Mutex());
  return Get().counters;
}

void CountBytes(bool on) {
  const std::scoped_lock lock(Mutex());
  Get().counts_bytes = on;
}

void ResetCounters() {
  const std::scoped_lock lock(Mutex());
  Get().counters = {};
}

}  // namespace emulated_gpu
