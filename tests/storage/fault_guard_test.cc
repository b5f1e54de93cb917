// Tests unreadable pages of mapped databases: the file was truncated, or the disk fails.

#include "trainer/storage/fault_guard.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leveldb/db.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lmdb/memory_maps.h"
#include "storage/test_data.h"
#include "support/in_child.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

constexpr char kCutShort[] = ": the database file became shorter while it was read (SIGBUS)";
constexpr char kUnreadable[] = ": a page of the file cannot be read (SIGBUS)";

class MapFaultsTest : public testing::Test {
 protected:
  MapFaultsTest() {
    for (const char* backend : {"LMDB", "LEVELDB"}) WriteDb(backend, folder_ / backend, Values());
    // LevelDB keeps a writer's records in its log until the database is opened again.
    OpenCursor("LEVELDB", folder_ / "LEVELDB");
    leveldb::DB* raw = nullptr;
    EXPECT_TRUE(leveldb::DB::Open({}, folder_ / "LEVELDB", &raw).ok());
    const std::unique_ptr<leveldb::DB> db(raw);
    db->CompactRange(nullptr, nullptr);
  }

  // Returns records of several pages each, filled with noise that does not compress.
  static Records Values() {
    Records records;
    uint32_t noise = 1;
    for (int i = 0; i < 100; ++i) {
      std::string value(9000, ' ');
      for (char& c : value) c = static_cast<char>((noise = noise * 1664525 + 1013904223) >> 24);
      records.emplace_back(Key8(i), value);
    }
    return records;
  }

  // Makes the pages of the mapped files in the folder `backend` unreadable: they are remapped to an
  // empty file, while the files stay unchanged.
  void FailPages(const std::string& backend) const {
    const int empty = memfd_create("empty", 0);
    const std::string folder = std::filesystem::canonical(folder_ / backend).string() + "/";
    std::vector<std::pair<void*, size_t>> found;
    MemoryMap map;
    for (MemoryMaps maps; maps.Next(&map);) {
      const std::string file = map.file;
      if (!file.starts_with(folder) || file.ends_with("lock.mdb")) continue;
      found.emplace_back(reinterpret_cast<void*>(map.start), map.end - map.start);
    }
    for (const auto& [start, bytes] : found) {
      mmap(start, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, empty, 0);
    }
    close(empty);
  }
  // Truncates the files, but not their mappings.
  void CutShort(const std::string& backend) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / backend)) {
      const std::string end = entry.path().extension();
      if (end == ".ldb" || entry.path().filename() == "data.mdb") {
        std::filesystem::resize_file(entry.path(), 8192);
      }
    }
  }

  // Runs read(), which meets a fault, in a child process. Returns the code of the error that read()
  // throws or the handler gets, or 1 if its text is not `expected`.
  template <class Read>
  int CodeOf(const std::string& expected, const Read& read) const {
    static std::string text;
    text = expected;
    return InChild([&] {
      alarm(100);
      InstallFaultHandler([](const char* line, size_t bytes, ErrorCode code) {
        const bool named = std::string(line, bytes).starts_with("error: " + text);
        _exit(named ? static_cast<int>(code) : 1);
      });
      const Thrown thrown = Catch(read);
      return thrown.text.starts_with(text) ? thrown.code : 1;
    });
  }

  static void ReadOn(Cursor* cursor) {
    while (!cursor->Next()) continue;
  }

  const TempFolder folder_;
};

TEST_F(MapFaultsTest, AFileThatBecameShorterIs65) {
  if (kSanitized) GTEST_SKIP() << "sanitizers watch what handlers of faults do";
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
    const std::string path = folder_ / backend;
    EXPECT_EQ(CodeOf(path + kCutShort,
                     [&] {
                       const auto cursor = OpenCursor(backend, path);
                       CutShort(backend);
                       ReadOn(cursor.get());
                     }),
              65)
        << backend;
  }
}

TEST_F(MapFaultsTest, APageWithinTheFileIs74) {
  if (kSanitized) GTEST_SKIP() << "sanitizers watch what handlers of faults do";
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
    const std::string path = folder_ / backend;
    EXPECT_EQ(CodeOf(path + kUnreadable,
                     [&] {
                       const auto cursor = OpenCursor(backend, path);
                       FailPages(backend);
                       ReadOn(cursor.get());
                     }),
              74)
        << backend;
  }
}

// The pages of a value are read after LMDB returned it, by TouchPages or by the value's user.
TEST_F(MapFaultsTest, ThePagesOfAValueAreItsDatabases) {
  if (kSanitized) GTEST_SKIP() << "sanitizers watch what handlers of faults do";
  const std::string path = folder_ / "LMDB", bytes = ReadBytes(path + "/data.mdb");
  for (const bool touches : {true, false}) {
    const auto read = [&](const auto& damage) {
      const auto first = OpenCursor("LMDB", path), second = OpenCursor("LMDB", path);
      damage();
      if (touches) TouchPages(path, second->Value());
      static_cast<void>(*static_cast<const volatile char*>(&second->Value().back()));
    };
    EXPECT_EQ(CodeOf(path + kUnreadable, [&] { read([&] { FailPages("LMDB"); }); }), 74);
    EXPECT_EQ(CodeOf(path + kCutShort, [&] { read([&] { CutShort("LMDB"); }); }), 65);
    WriteBytes(path + "/data.mdb", bytes);
  }
}

// LevelDB's own threads read this way too.
TEST_F(MapFaultsTest, AFileThatNobodyNamedIsNamedAsItIsMapped) {
  if (kSanitized) GTEST_SKIP() << "sanitizers watch what handlers of faults do";
  const std::string file = std::filesystem::canonical(folder_ / "") / "file";
  WriteBytes(file, std::string(3 * 4096, 'x'));
  EXPECT_EQ(CodeOf(file + kCutShort,
                   [&] {
                     const int fd = open(file.c_str(), O_RDONLY);
                     const auto* start = static_cast<const volatile char*>(
                         mmap(nullptr, 3 * 4096, PROT_READ, MAP_SHARED, fd, 0));
                     std::filesystem::resize_file(file, 4096);
                     static_cast<void>(start[5000]);
                   }),
            65);
}

TEST_F(MapFaultsTest, TheMapsOfThisProcessAreListed) {
  const auto cursor = OpenCursor("LMDB", folder_ / "LMDB");
  const std::string file = std::filesystem::canonical(folder_ / "LMDB/data.mdb");
  const auto here = reinterpret_cast<uintptr_t>(cursor->Value().data());
  int found = 0, before = 0;
  MemoryMap map;
  uintptr_t last = 0;
  for (MemoryMaps maps; maps.Next(&map); last = map.end) {
    before += map.start < last;
    if (here < map.start || here >= map.end) continue;
    ++found;
    EXPECT_EQ(map.file, file);
    EXPECT_EQ(map.offset, 0u);
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(before, 0);
}

}  // namespace
}  // namespace trainer
