// Pages of mapped files that cannot be read any more, without the signals that tell of them: these
// are in away_test.cc.

#include "map_mender.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/test_data.h"
#include "trainer/data/map_faults.h"

namespace trainer {
namespace {

class MapMenderTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 3 * 4096;

  MapMenderTest() {
    std::string text;
    for (size_t i = 0; i < kBytes; ++i) text += static_cast<char>('a' + i / 4096);
    WriteBytes(path_, text);
    const int fd = open(path_.c_str(), O_RDONLY);
    start_ = static_cast<const char*>(mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0));
    stamp_ = StampOf(fd, path_);
    close(fd);
  }
  ~MapMenderTest() override {
    SetIoTimeout(kDefaultIoTimeout);
    munmap(const_cast<char*>(start_), kBytes);
  }

  MendableMap Map() const {
    return {.path = path_, .start = start_, .bytes = kBytes, .stamp = stamp_};
  }
  // From here on the pages are of a file that has none.
  void TakePagesAway() const {
    const int empty = memfd_create("empty", 0);
    mmap(const_cast<char*>(start_), kBytes, PROT_READ, MAP_SHARED | MAP_FIXED, empty, 0);
    close(empty);
  }
  Mending MendAt(size_t offset) const {
    return MendPage(reinterpret_cast<uintptr_t>(start_) + offset);
  }

  TempFolder folder_;
  std::string path_ = folder_ / "file";
  const char* start_ = nullptr;
  FileStamp stamp_;
};

TEST_F(MapMenderTest, PagesComeBackAtTheirAddress) {
  const MendingScope scope(Map());
  TakePagesAway();
  EXPECT_EQ(MendAt(5000), Mending::kDone);
  EXPECT_EQ(start_[0], 'a');
  EXPECT_EQ(start_[5000], 'b');
  EXPECT_EQ(start_[kBytes - 1], 'c');
}

TEST_F(MapMenderTest, FilesOfAFolderAreFoundByTheirNames) {
  const MendingScope scope(MendableMap{.path = std::filesystem::canonical(folder_ / "").string()});
  EXPECT_EQ(MendAt(5000), Mending::kDone);
  EXPECT_EQ(start_[5000], 'b');
}

TEST_F(MapMenderTest, AFileThatDoesNotComeBackIsZerosAndAnError) {
  SetIoTimeout(std::chrono::milliseconds(1));
  {
    const MendingScope scope(Map());
    TakePagesAway();
    std::filesystem::remove(path_);
    EXPECT_EQ(MendAt(0), Mending::kLost);
    EXPECT_EQ(start_[0], 0);
    EXPECT_THAT(Catch([] { ThrowIfMapLost(); }),
                Refuses(ErrorCode::kIo, "No such file or directory; it was tried again for"));
  }
  EXPECT_EQ(Catch([] { ThrowIfMapLost(); }).code, 0);
}

TEST_F(MapMenderTest, AnotherFileInItsPlaceIsDamage) {
  const MendingScope scope(Map());
  WriteBytes(path_, "shorter");
  EXPECT_EQ(MendAt(5000), Mending::kUnfit);
}

TEST_F(MapMenderTest, OtherMemoryIsNotItsBusiness) {
  const MendingScope scope(Map());
  const int here = 0;
  EXPECT_EQ(MendPage(reinterpret_cast<uintptr_t>(&here)), Mending::kUnfit);
}

}  // namespace
}  // namespace trainer
