#include "map_mender.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>

#include "memory_maps.h"
#include "trainer/base/error.h"
#include "trainer/data/map_faults.h"

namespace trainer {
namespace {

// One question at a time. All of it stays until the process ends, as the thread does.
struct Desk {
  std::mutex mutex;  // of maps
  std::list<MendableMap> maps;
  std::atomic<int> lost{0};  // of them
  sem_t free, asked, answered;
  std::atomic<pid_t> process{0};  // whose thread it is: a fork has none
  std::atomic<pthread_t> thread{};
  uintptr_t address = 0;
  const std::stop_token* stop = nullptr;  // of the thread that asked
  Mending answer = Mending::kUnfit;
};

Desk& TheDesk() {
  static Desk* const desk = [] {
    auto* made = new Desk;
    sem_init(&made->free, 0, 1);
    sem_init(&made->asked, 0, 0);
    sem_init(&made->answered, 0, 0);
    return made;
  }();
  return *desk;
}

std::atomic<Desk*> open_desk{nullptr};  // for handlers

// Without using the core meanwhile: who watches for a read that hangs goes by that.
void Await(sem_t* what) {
  while (sem_wait(what) != 0) continue;
}

// A part of a file that is mapped.
struct Target {
  std::string file;
  void* start = nullptr;
  size_t bytes = 0;
  uint64_t offset = 0;   // in the file, of the start
  uint64_t touched = 0;  // in the file: the byte that could not be read
  std::optional<FileStamp> stamp;
};

bool Holds(const MendableMap& map, uintptr_t address) {
  return map.bytes > 0 && address - reinterpret_cast<uintptr_t>(map.start) < map.bytes;
}

// The system names a file that was removed, or lies on a file system that was taken away, in other
// ways; its name remains.
std::string NameIn(const std::string& file) {
  constexpr std::string_view kRemoved = " (deleted)";
  const std::string name = FileNameOf(file);
  return name.ends_with(kRemoved) ? name.substr(0, name.size() - kRemoved.size()) : name;
}

// The map to mend, and what is behind the address.
MendableMap* Find(Desk& desk, uintptr_t address, Target* target) {
  for (MendableMap& map : desk.maps) {
    if (!Holds(map, address)) continue;
    const auto start = reinterpret_cast<uintptr_t>(map.start);
    *target = {map.path, const_cast<void*>(map.start), map.bytes, 0, address - start, map.stamp};
    return &map;
  }
  for (const MemoryMap& region : ListMemoryMaps()) {
    if (address < region.start || address >= region.end || region.file.empty()) continue;
    MendableMap* found = nullptr;
    for (MendableMap& map : desk.maps) {
      if (map.bytes == 0 && (found == nullptr || FolderOf(region.file) == map.path)) found = &map;
    }
    if (found == nullptr) return nullptr;
    *target = {JoinPath(found->path, NameIn(region.file)),
               reinterpret_cast<void*>(region.start),
               region.end - region.start,
               region.offset,
               region.offset + address - region.start,
               {}};
    return found;
  }
  return nullptr;
}

void MapAgain(const Target& target) {
  const FileHandle file = OpenForReading(target.file);
  const FileStamp now = StampOf(file.get(), target.file);
  if (now.bytes <= target.touched || (target.stamp && now != *target.stamp)) {
    throw Error(ErrorCode::kData, {target.file}, "the file was changed while it was read");
  }
  char byte = 0;
  if (PlaceOps::Posix().ReadAt(file.get(), &byte, 1, target.touched) < 0 ||
      mmap(target.start, target.bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file.get(),
           static_cast<off_t>(target.offset)) == MAP_FAILED) {
    ThrowFileError(FileUse::kInput, "read", target.file, errno);
  }
}

Mending Mend(Desk& desk, uintptr_t address) {
  const std::lock_guard lock(desk.mutex);
  Target target;
  MendableMap* const map = Find(desk, address, &target);
  if (map == nullptr) return Mending::kUnfit;
  std::optional<IoStopScope> asker;
  if (desk.stop != nullptr) asker.emplace(*desk.stop);
  try {
    ReadPatiently(FileWas::kThere, [&] { MapAgain(target); });
    return Mending::kDone;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kData) return Mending::kUnfit;
    if (map->lost.empty()) ++desk.lost;
    map->lost = error.what();
  }
  const void* const zeros = mmap(target.start, target.bytes, PROT_READ,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return zeros == MAP_FAILED ? Mending::kUnfit : Mending::kLost;
}

void Serve(Desk& desk) {
  constexpr int kMostRepeats = 100;  // of a page that cannot be touched although it can be read
  uintptr_t last = 0;
  for (int repeats = 0;;) {
    Await(&desk.asked);
    repeats = desk.address == last ? repeats + 1 : 0;
    last = desk.address;
    desk.answer = repeats > kMostRepeats ? Mending::kUnfit : Mend(desk, desk.address);
    sem_post(&desk.answered);
  }
}

// Signals are for other threads.
void StartThread(Desk& desk) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([&desk] { Serve(desk); });
  desk.thread = thread.native_handle();
  thread.detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

MendingScope::MendingScope(MendableMap map) {
  Desk& desk = TheDesk();
  const std::lock_guard lock(desk.mutex);
  map_ = desk.maps.insert(desk.maps.end(), std::move(map));
  if (desk.process.exchange(getpid()) != getpid()) StartThread(desk);
  open_desk = &desk;
}

MendingScope::~MendingScope() {
  Desk& desk = TheDesk();
  const std::lock_guard lock(desk.mutex);
  if (!map_->lost.empty()) --desk.lost;
  desk.maps.erase(map_);
}

bool MendingScope::IsLost() const {
  const std::lock_guard lock(TheDesk().mutex);
  return !map_->lost.empty();
}

Mending MendPage(uintptr_t address) {
  Desk* const desk = open_desk;
  if (desk == nullptr || desk->process != getpid()) return Mending::kUnfit;
  Await(&desk->free);
  desk->address = address;
  desk->stop = IoStopOfThread();
  sem_post(&desk->asked);
  Await(&desk->answered);
  const Mending answer = desk->answer;
  sem_post(&desk->free);
  return answer;
}

std::optional<pthread_t> MendingThread() {
  const Desk* const desk = open_desk;
  if (desk == nullptr || desk->process != getpid()) return std::nullopt;
  return desk->thread;
}

void ThrowIfMapLost() {
  const Desk* const open = open_desk;
  if (open == nullptr || open->lost == 0) return;
  Desk& desk = TheDesk();
  const std::lock_guard lock(desk.mutex);
  for (const MendableMap& map : desk.maps) {
    if (!map.lost.empty()) throw Error(ErrorCode::kIo, map.lost);
  }
}

}  // namespace trainer
