#include "trainer/storage/fault_guard.h"

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>

#include "lmdb/memory_maps.h"
#include "trainer/base/text/text.h"

namespace trainer {

// A mapped file, which the signal handler may read at any time. It is valid if `bytes` is not 0.
struct Slot {
  std::string text;
  std::atomic<uintptr_t> start = 0;
  std::atomic<size_t> bytes = 0;
  std::atomic<int> fd = -1;
  bool taken = false;
  Slot* next = nullptr;
};

namespace {

constinit thread_local FaultFrame* innermost = nullptr;
constinit std::atomic<Slot*> first_slot = nullptr;
EndOnFault end_on_fault = nullptr;
struct sigaction old_segv, old_bus;

std::mutex& SlotMutex() {
  static std::mutex mutex;
  return mutex;
}

// Slots are reused but never freed, so that the handler can walk the list without a lock.
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

const Slot* FindSlot(uintptr_t address) {
  for (const Slot* slot = first_slot; slot != nullptr; slot = slot->next) {
    const size_t bytes = slot->bytes;
    if (bytes != 0 && address - slot->start < bytes) return slot;
  }
  return nullptr;
}

struct FilePlace {
  char file[4096] = "";  // as /proc/self/maps names it
  uint64_t offset = 0;
};

// For addresses without a slot: LevelDB maps its tables itself.
void FindPlace(uintptr_t address, FilePlace* place) {
  MemoryMap map;
  for (MemoryMaps maps; maps.Next(&map);) {
    if (address < map.start || address >= map.end) continue;
    std::strncpy(place->file, map.file, sizeof place->file - 1);
    place->offset = map.offset + (address - map.start);
    return;
  }
}

// Tells a file that became shorter from one that cannot be read. If even the file's size cannot be
// read, its disk or file server has failed.
MapFault ClassifyBus(uintptr_t address, const Slot* slot, FilePlace* place) {
  struct stat facts {};
  bool is_known = false;
  if (slot != nullptr) {
    place->offset = address - slot->start;
    is_known = fstat(slot->fd, &facts) == 0;
  } else {
    FindPlace(address, place);
    is_known = stat(place->file, &facts) == 0;
  }
  const bool is_beyond = is_known && place->offset >= static_cast<uint64_t>(facts.st_size);
  return is_beyond ? MapFault::kCutShort : MapFault::kUnreadable;
}

ErrorCode CodeOf(MapFault fault) {
  return fault == MapFault::kUnreadable ? ErrorCode::kIo : ErrorCode::kData;
}

const char* TextOf(MapFault fault) {
  switch (fault) {
    case MapFault::kCutShort:
      return "the database file became shorter while it was read (SIGBUS); maybe another program "
             "is writing or copying it. Check it with 'trainer dataset check DB'";
    case MapFault::kUnreadable:
      return "a page of the file cannot be read (SIGBUS): its disk or its file server has failed";
    default:
      return "the database is damaged: one of its pages points outside the file (SIGSEGV); copy it "
             "or make it again";
  }
}

// Formats "error: <database>: <text>" on the stack, because a signal handler must not allocate.
void End(const char* database, MapFault fault) {
  constexpr size_t kLongest = 4000;
  char line[kLongest + 1];
  size_t used = 0;
  const auto add = [&](const char* part) {
    for (; *part != '\0' && used < kLongest; ++part) line[used++] = *part;
  };
  add("error: ");
  add(database);
  add(*database == '\0' ? "" : ": ");
  add(TextOf(fault));
  line[used++] = '\n';
  end_on_fault(line, used, CodeOf(fault));
}

// Restores the previous handler. A fault comes again by itself, a sent signal has to be raised.
void PassOn(int signal, bool sent) {
  sigaction(signal, signal == SIGBUS ? &old_bus : &old_segv, nullptr);
  if (sent) raise(signal);
}

void OnFault(int signal, siginfo_t* info, void*) {
  if (info->si_code <= 0) return PassOn(signal, true);
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const Slot* const slot = FindSlot(address);
  FilePlace place;
  const MapFault fault = signal == SIGBUS ? ClassifyBus(address, slot, &place) : MapFault::kDamaged;
  FaultFrame* const frame = innermost;
  if (frame != nullptr && frame->jumps) {
    frame->jumps = false;
    frame->fault = fault;
    siglongjmp(frame->jump, 1);
  }
  const char* database = slot != nullptr ? slot->text.c_str() : place.file;
  if (frame != nullptr && frame->text != nullptr) database = frame->text;
  if (*database == '\0' && signal == SIGSEGV) return PassOn(signal, false);
  End(database, fault);
}

}  // namespace

// The handler uses no alternative stack and blocks no signal, because it may exit by siglongjmp.
void InstallFaultHandler(EndOnFault end) {
  end_on_fault = end;
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &old_segv);
  sigaction(SIGBUS, &action, &old_bus);
}

MappedRange::MappedRange(const std::string& path, const void* start, size_t bytes, int fd) {
  const std::lock_guard lock(SlotMutex());
  slot_ = TakeSlot();
  slot_->text = EscapeControl(path);
  slot_->start = reinterpret_cast<uintptr_t>(start);
  slot_->fd = fd;
  slot_->bytes = bytes;
}

MappedRange::~MappedRange() {
  const std::lock_guard lock(SlotMutex());
  slot_->bytes = 0;
  slot_->taken = false;
}

FaultFrame::FaultFrame() : outer(innermost) { innermost = this; }
FaultFrame::~FaultFrame() { innermost = outer; }

void ThrowMapFault(const std::string& path, MapFault fault) {
  throw Error(CodeOf(fault), {path}, TextOf(fault));
}

}  // namespace trainer
