#include "trainer/data/map_faults.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>

#include "map_mender.h"
#include "trainer/base/text.h"

namespace trainer {

// Read by the handler at any time: whole when `bytes` is not 0.
struct Slot {
  std::string text;
  std::atomic<uintptr_t> start = 0;
  std::atomic<size_t> bytes = 0;
  bool taken = false;
  Slot* next = nullptr;
};

namespace {

constinit thread_local FaultFrame* innermost = nullptr;
constinit thread_local bool looks_for_lost = false;
constinit std::atomic<Slot*> first_slot = nullptr;
EndOnFault end_on_fault = nullptr;
struct sigaction old_segv, old_bus;

std::mutex& SlotMutex() {
  static std::mutex mutex;
  return mutex;
}

// A slot once made stays, so that the handler may follow the list.
Slot* TakeSlot() {
  for (Slot* slot = first_slot; slot != nullptr; slot = slot->next) {
    if (slot->taken) continue;
    slot->taken = true;
    return slot;
  }
  static auto* const slots = new std::deque<Slot>;  // outlives every database
  Slot& slot = slots->emplace_back();
  slot.taken = true;
  slot.next = first_slot;
  first_slot = &slot;
  return &slot;
}

const char* DatabaseAt(uintptr_t address) {
  for (const Slot* slot = first_slot; slot != nullptr; slot = slot->next) {
    const size_t bytes = slot->bytes;
    if (bytes != 0 && address - slot->start < bytes) return slot->text.c_str();
  }
  return nullptr;
}

// Puts "error: <database>: <text>" together without memory of its own beyond the stack's.
void End(const char* database, const char* text, ErrorCode code) {
  constexpr size_t kLongest = 4000;
  char line[kLongest + 1];
  size_t used = 0;
  const auto add = [&](const char* part) {
    for (; *part != '\0' && used < kLongest; ++part) line[used++] = *part;
  };
  add("error: ");
  if (database != nullptr) {
    add(database);
    add(": ");
  }
  add(text);
  line[used++] = '\n';
  end_on_fault(line, used, code);
}

// Back to what was there before us. A fault happens again on return; a signal that was sent does
// not.
void PassOn(int signal, bool sent) {
  sigaction(signal, signal == SIGBUS ? &old_bus : &old_segv, nullptr);
  if (sent) raise(signal);
}

void OnFault(int signal, siginfo_t* info, void*) {
  if (info->si_code <= 0) return PassOn(signal, true);
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const Mending mending = signal == SIGBUS ? MendPage(address) : Mending::kUnfit;
  FaultFrame* const frame = innermost;
  const bool repeats = mending == Mending::kDone || (mending == Mending::kLost && looks_for_lost &&
                                                     (frame == nullptr || !frame->jumps));
  if (repeats) {
    errno = error;
    return;
  }
  if (frame != nullptr && frame->jumps) {
    frame->jumps = false;
    frame->signal = signal;
    errno = error;
    siglongjmp(frame->jump, 1);
  }
  const char* database =
      frame != nullptr && frame->text != nullptr ? frame->text : DatabaseAt(address);
  if (database == nullptr && signal != SIGBUS) return PassOn(signal, false);
  if (mending == Mending::kLost) {
    return End(database,
               "its file cannot be read any more (SIGBUS) and did not come back in time "
               "(--io_timeout)",
               ErrorCode::kIo);
  }
  End(database,
      database == nullptr
          ? "a file became shorter while it was read (SIGBUS), or its disk fails; is "
            "something writing or copying it?"
          : FaultText(signal),
      ErrorCode::kData);
}

}  // namespace

// No alternative stack, and no signal is blocked: the handler may be left by a jump.
void HandleMapFaults(EndOnFault end) {
  end_on_fault = end;
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &old_segv);
  sigaction(SIGBUS, &action, &old_bus);
}

MappedFile::MappedFile(const std::string& path, const void* start, size_t bytes) {
  const std::lock_guard lock(SlotMutex());
  slot_ = TakeSlot();
  slot_->text = EscapeControl(path);
  slot_->start = reinterpret_cast<uintptr_t>(start);
  slot_->bytes = bytes;
}

MappedFile::~MappedFile() {
  const std::lock_guard lock(SlotMutex());
  slot_->bytes = 0;
  slot_->taken = false;
}

FaultFrame::FaultFrame() : outer(innermost) { innermost = this; }
FaultFrame::~FaultFrame() { innermost = outer; }

LostMapScope::LostMapScope() : outer_(looks_for_lost) { looks_for_lost = true; }
LostMapScope::~LostMapScope() { looks_for_lost = outer_; }

FaultNote::FaultNote(const std::string& path) : text_(EscapeControl(path)) {
  frame_.text = text_.c_str();
}

const char* FaultText(int signal) {
  return signal == SIGBUS
             ? "the database file became shorter while it was read (SIGBUS), or its disk fails; is "
               "something writing or copying it? 'trainer dataset check DB' checks it"
             : "the database is damaged: one of its pages leads outside the file (SIGSEGV); copy "
               "it "
               "or make it again";
}

}  // namespace trainer
