// --local_copy: data sets are read from copies.

#include "local_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/log_collector.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class LocalDataTest : public testing::Test {
 protected:
  LocalDataTest() {
    const auto writer = CreateDb("LMDB", folder_ / "set");
    writer->Put("a", "b");
    writer->Commit();
    std::filesystem::create_directory(folder_ / "copies");
    WriteNet(Join("type: \"Data\" data_param { source: \"", folder_ / "set", "\" batch_size: 1 }"));
  }
  void WriteNet(const std::string& layer) {
    folder_.Write("net.prototxt", Join("layer { name: \"d\" top: \"x\" ", layer, " }"));
    source_.file =
        folder_.Write("solver.prototxt",
                      Join("net: \"", folder_ / "net.prototxt", "\" snapshot_prefix: \"",
                           folder_ / "snap", "\" base_lr: 1 lr_policy: \"fixed\" max_iter: 4"));
  }

  const TempFolder folder_;
  SolverSource source_;
  const LogCollector log_;
};

TEST_F(LocalDataTest, CopiesExistAsLongAsTheResult) {
  {
    const auto copies = CopyDataLocally(source_, {folder_ / "copies", false}, false);
    ASSERT_THAT(copies, SizeIs(1));
    EXPECT_TRUE(std::filesystem::exists(copies[0]->path()));
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "copies")) {
    if (entry.path().filename() == "data.mdb") ++files;
  }
  EXPECT_EQ(files, 0u);
}

TEST_F(LocalDataTest, OffCopiesNothing) {
  EXPECT_THAT(CopyDataLocally(source_, {"off", false}, false), IsEmpty());
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(LocalDataTest, SaysThatANetReadsNothing) {
  WriteNet("type: \"DummyData\" dummy_data_param { shape { dim: 1 } }");
  EXPECT_THAT(CopyDataLocally(source_, {folder_ / "copies", false}, false), IsEmpty());
  EXPECT_THAT(log_.lines, Contains(HasSubstr("--local_copy has no effect")));
}

TEST_F(LocalDataTest, LeavesErrorsInTheSolverToItsNextReader) {
  source_.file = folder_ / "none";
  EXPECT_THAT(CopyDataLocally(source_, {folder_ / "copies", false}, false), IsEmpty());
  EXPECT_THAT(log_.lines, IsEmpty());
}

}  // namespace
}  // namespace trainer
