// Tests LMDB's errors, injected into real files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <functional>
#include <set>

#include "storage/test_data.h"
#include "support/in_child.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/fault_guard.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LmdbCursorTest : public testing::Test {
 protected:
  LmdbCursorTest() {
    // The records need several leaf pages, and some values have their own pages.
    for (int i = 0; i < 40; ++i) {
      records_.emplace_back(Key8(i), std::string(i % 10 == 0 ? 9000 : 300, static_cast<char>(i)));
    }
    WriteDb("LMDB", path_, records_);
    bytes_ = ReadBytes(path_ + "/data.mdb");
  }

  // Replaces data.mdb.
  void Replace(const std::string& bytes) {
    std::filesystem::remove(path_ + "/lock.mdb");
    WriteBytes(path_ + "/data.mdb", bytes);
  }
  int CountRecords() {
    const auto cursor = OpenCursor("LMDB", path_);
    int count = 1;
    while (!cursor->Next()) ++count;
    return count;
  }
  Thrown Refusal() {
    return Catch([&] { CountRecords(); });
  }

  TempFolder folder_;
  std::string path_ = folder_ / "db";
  Records records_;
  std::string bytes_;
};

TEST_F(LmdbCursorTest, RefusesEveryTruncationWithoutTouchingMissingPages) {
  ASSERT_EQ(bytes_.size() % 4096, 0u);
  std::set<size_t> lengths{1, 15, 16, 17, 43, 44, 100, 4095, 4097, 8191};
  for (size_t length = 4096; length < bytes_.size(); length += 4096) {
    lengths.insert({length - 1, length, length + 1, length + 2048});
  }
  for (const size_t length : lengths) {
    Replace(bytes_.substr(0, length));
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "data.mdb is truncated: ")) << length;
  }
  Replace(bytes_);
  EXPECT_EQ(CountRecords(), 40);
}

TEST_F(LmdbCursorTest, NamesBothSizesOfATruncatedFile) {
  Replace(bytes_.substr(0, 12288));
  EXPECT_THAT(Refusal().text,
              HasSubstr("12288 bytes instead of " + std::to_string(bytes_.size() / 4096) +
                        " pages of 4096 bytes ("));
}

TEST_F(LmdbCursorTest, RefusesZeroBytes) {
  Replace("");
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "data.mdb has 0 bytes"));
}

TEST_F(LmdbCursorTest, RefusesAFileThatIsNotLmdb) {
  Replace(std::string(20000, 'x'));
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "not an LMDB file"));
}

TEST_F(LmdbCursorTest, RefusesAFolderInPlaceOfTheFile) {
  std::filesystem::remove(path_ + "/data.mdb");
  std::filesystem::create_directory(path_ + "/data.mdb");
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "data.mdb is not a file"));
}

TEST_F(LmdbCursorTest, ExplainsAnotherFormatVersion) {
  std::string newer = bytes_;
  newer[20] = newer[4096 + 20] = 2;
  Replace(newer);
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "mdb_dump of that version, then mdb_load"));
}

// LMDB itself reports a lack of memory.
TEST_F(LmdbCursorTest, RefusesAnImpossibleMap) {
  std::string bad = bytes_;
  bad[32 + 7] = bad[4096 + 32 + 7] = 0x40;
  Replace(bad);
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "exceeds the address space of a process"));
}

TEST_F(LmdbCursorTest, RefusesAnImpossiblePageSize) {
  for (const int page_bytes : {0, 1, 4097, 1 << 20}) {
    std::string bad = bytes_;
    for (int i = 0; i < 4; ++i) bad[40 + i] = static_cast<char>(page_bytes >> (8 * i));
    Replace(bad);
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "its header says pages of " +
                                                         std::to_string(page_bytes) + " bytes"));
  }
}

TEST_F(LmdbCursorTest, SurvivesAnyDamagedByteOfTheHeaders) {
  // LMDB has no checksums, so some damage is not detected. None may end the process.
  int refused = 0;
  for (size_t page = 0; page < 2; ++page) {
    for (size_t i = 0; i < 152; ++i) {
      std::string bad = bytes_;
      bad[page * 4096 + i] = static_cast<char>(~bad[page * 4096 + i]);
      Replace(bad);
      const Thrown thrown = Refusal();
      if (thrown.code != 0) ++refused;
    }
  }
  EXPECT_GT(refused, 20);
}

// Reads each damaged file in a child process, because a fault ends the process. Returns 0 if no
// fault and no wrong result occurred.
int ReadInChild(const std::function<void(const std::function<void()>&)>& damage_and_read) {
  return InChild([&] {
    alarm(1000);
    InstallFaultHandler([](const char*, size_t, ErrorCode) { _exit(65); });
    int wrong = 0;
    damage_and_read([&] { ++wrong; });
    return wrong == 0 ? 0 : 1;
  });
}

TEST_F(LmdbCursorTest, SurvivesAnyDamagedPageHeader) {
  if (kSanitized) GTEST_SKIP() << "sanitizers watch what handlers of faults do";
  int refused = 0;
  EXPECT_EQ(ReadInChild([&](const auto& wrong) {
              for (size_t page = 2; page < bytes_.size() / 4096; ++page) {
                for (size_t offset = 0; offset < 24; offset += 2) {
                  for (const char* value : {"\xff\xff", "\x10\x00", "\x21\x00", "\x01\x7f"}) {
                    std::string bad = bytes_;
                    bad.replace(page * 4096 + offset, 2, std::string(value, 2));
                    Replace(bad);
                    const Thrown thrown = Refusal();
                    refused += thrown.code != 0;
                    if (thrown.code != 0 && thrown.code != 65) wrong();
                    if (thrown.code != 0 && !thrown.text.starts_with(path_ + ": ")) wrong();
                  }
                }
              }
              if (refused < 20) wrong();
            }),
            0);
}

TEST_F(LmdbCursorTest, SurvivesDamageAnywhere) {
  if (kSanitized) GTEST_SKIP() << "sanitizers watch what handlers of faults do";
  EXPECT_EQ(ReadInChild([&](const auto& wrong) {
              uint32_t random = 7;
              const auto below = [&](size_t n) {
                random = random * 1664525 + 1013904223;
                return static_cast<size_t>((uint64_t{random} * n) >> 32);
              };
              for (int i = 0; i < 1500; ++i) {
                std::string bad = bytes_;
                const size_t page = 2 + below(bytes_.size() / 4096 - 2);
                for (size_t n = 1 + below(4); n > 0; --n) {
                  bad[page * 4096 + below(n % 2 == 0 ? 4096 : 40)] = static_cast<char>(below(256));
                }
                Replace(bad);
                const Thrown thrown = Refusal();
                if (thrown.code != 0 && thrown.code != 65) wrong();
              }
            }),
            0);
}

// A branch that points to one page twice would return its records twice.
TEST_F(LmdbCursorTest, RefusesRecordsThatComeTwiceOrNotAtAll) {
  int twice = 0, missing = 0;
  for (size_t page = 2; page < bytes_.size() / 4096; ++page) {
    const auto word = [&](size_t at) {
      return static_cast<unsigned char>(bytes_[page * 4096 + at]) |
             static_cast<unsigned char>(bytes_[page * 4096 + at + 1]) << 8;
    };
    if ((word(10) & 3) == 0) continue;  // the page is neither a branch nor a leaf
    std::string bad = bytes_;
    bad.replace(
        page * 4096 + 12, 2,
        std::string{static_cast<char>(word(12) - 2), static_cast<char>((word(12) - 2) >> 8)});
    Replace(bad);  // the page has one entry less
    missing += Refusal().text.find("its header says 40 records") != std::string::npos;
    bad = bytes_;
    bad.replace(page * 4096 + 18, 2, bytes_, page * 4096 + 16, 2);  // the second equals the first
    Replace(bad);
    twice += Refusal().text.find("which must come before it") != std::string::npos;
  }
  EXPECT_GT(missing, 0);
  EXPECT_GT(twice, 0);
}

TEST_F(LmdbCursorTest, OtherFaultsEndTheProcessAsBefore) {
  if (kSanitized) GTEST_SKIP() << "sanitizers watch what handlers of faults do";
  const auto run = [&](const std::function<void()>& fault) {
    return InChild([&] {
      InstallFaultHandler([](const char*, size_t, ErrorCode) { _exit(65); });
      const auto cursor = OpenCursor("LMDB", path_);
      cursor->Next();
      fault();
      return 0;
    });
  };
  volatile uintptr_t nowhere = 8;
  EXPECT_EQ(run([&] { *reinterpret_cast<volatile int*>(nowhere) = 1; }), 128 + SIGSEGV);
  EXPECT_EQ(run([] { kill(getpid(), SIGSEGV); }), 128 + SIGSEGV);
  EXPECT_EQ(run([] { kill(getpid(), SIGBUS); }), 128 + SIGBUS);
}

TEST_F(LmdbCursorTest, ReadsAReadOnlyFolderWithoutALockAndWarnsOnce) {
  std::filesystem::remove(path_ + "/lock.mdb");
  ASSERT_EQ(chmod(path_.c_str(), 0555), 0);
  const LogLines log;
  {
    const AsNobody nobody;
    EXPECT_EQ(CountRecords(), 40);
  }
  EXPECT_THAT(log.Get(), ElementsAre(HasSubstr("reading without a lock")));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/lock.mdb"));
  chmod(path_.c_str(), 0755);
}

TEST_F(LmdbCursorTest, ReadsAWritableFolderWithoutAWarning) {
  const LogLines log;
  EXPECT_EQ(CountRecords(), 40);
  EXPECT_THAT(log.Get(), IsEmpty());
}

TEST_F(LmdbCursorTest, RefusesAFileThatMayNotBeRead) {
  ASSERT_EQ(chmod((path_ + "/data.mdb").c_str(), 0), 0);
  const AsNobody nobody;
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kNoPermission, "cannot open data.mdb"));
}

TEST_F(LmdbCursorTest, OpensOneDatabaseTwice) {
  const auto first = OpenCursor("LMDB", path_);
  const auto second = OpenCursor("LMDB", path_);
  EXPECT_FALSE(second->Next());
  EXPECT_EQ(first->Key(), Key8(0));
  EXPECT_EQ(second->Key(), Key8(1));
}

}  // namespace
}  // namespace trainer
