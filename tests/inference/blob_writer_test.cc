#include "predict/blob_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datum.pb.h"
#include "support/error_of.h"
#include "support/hdf5_floats.h"
#include "support/temp_folder.h"
#include "trainer/hdf5/reader.h"
#include "trainer/storage/array_file.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void Add(BlobWriter& writer, size_t blob, const std::vector<int64_t>& dims,
         const std::vector<float>& values) {
  writer.Add(blob, dims, values);
}

class BlobWriterTest : public testing::Test {
 protected:
  std::unique_ptr<BlobWriter> Make(const std::vector<std::string>& blobs,
                                   const std::string& backend = "HDF5", bool replace = false) {
    return MakeBlobWriter(backend, blobs, {out_}, replace);
  }
  std::string Refusal(const std::vector<std::string>& blobs, const std::string& backend = "HDF5") {
    const auto [code, message] = ErrorOf([&] { Make(blobs, backend); });
    EXPECT_EQ(code, ErrorCode::kUsage);
    return message;
  }

  TempFolder folder_;
  std::string out_ = folder_ / "out";
};

TEST_F(BlobWriterTest, RowsStandBehindEachOtherInDatasetsOfTheBlobsNames) {
  const auto writer = Make({"a/b", "c"});
  Add(*writer, 0, {2, 2}, {1, 2, 3, 4});
  Add(*writer, 1, {1}, {9});
  Add(*writer, 0, {0, 2}, {});
  Add(*writer, 0, {1, 2}, {5, 6});
  EXPECT_THAT(folder_.Names(), ElementsAre(testing::StartsWith(".out.tmp."))) << "not there yet";
  writer->Finish();
  EXPECT_THAT(folder_.Names(), ElementsAre("out"));
  const Hdf5Reader file(out_);
  EXPECT_THAT(file.Array("a/b").dims(), ElementsAre(3, 2));
  EXPECT_THAT(Floats(file.Array("a/b")), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Floats(file.Array("c")), ElementsAre(9));
}

TEST_F(BlobWriterTest, ABlobThatNeverHadARowIsAnEmptyDataset) {
  const auto writer = Make({"a"});
  Add(*writer, 0, {0, 3}, {});
  writer->Finish();
  EXPECT_THAT(Hdf5Reader(out_).Array("a").dims(), ElementsAre(0, 3));
}

TEST_F(BlobWriterTest, NothingStaysWithoutFinish) {
  for (const char* backend : {"HDF5", "LMDB", "LEVELDB"}) {
    Add(*Make({"a"}, backend), 0, {1}, {1});
    EXPECT_THAT(folder_.Names(), IsEmpty()) << backend;
  }
}

TEST_F(BlobWriterTest, AnOlderFileStaysUnlessItIsReplaced) {
  WriteText(out_, "older");
  const auto [code, message] = ErrorOf([&] { Make({"a"}); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("--force"));
  const auto writer = Make({"a"}, "HDF5", true);
  Add(*writer, 0, {1}, {1});
  EXPECT_EQ(ReadText(out_), "older");
  writer->Finish();
  EXPECT_TRUE(IsHdf5(out_));
}

TEST_F(BlobWriterTest, DatabasesHoldADatumForEachRow) {
  for (const char* backend : {"LMDB", "LEVELDB"}) {
    const std::string image = folder_ / backend, flat = folder_ / (std::string(backend) + "2");
    const auto writer = MakeBlobWriter(backend, {"image", "flat"}, {image, flat}, false);
    Add(*writer, 0, {2, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    Add(*writer, 1, {2, 2}, {1, 2, 3, 4});
    writer->Finish();
    const auto cursor = OpenCursor(backend, image);
    ASSERT_FALSE(cursor->Next());
    EXPECT_EQ(cursor->Key(), "0000000001");
    caffe::Datum datum;
    ASSERT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
    EXPECT_THAT((std::vector{datum.channels(), datum.height(), datum.width()}),
                ElementsAre(1, 2, 3));
    EXPECT_THAT(datum.float_data(), ElementsAre(6, 7, 8, 9, 10, 11));
    EXPECT_FALSE(datum.has_label());
    EXPECT_TRUE(cursor->Next()) << "two records";
    const auto second = OpenCursor(backend, flat);
    ASSERT_TRUE(datum.ParseFromString(std::string(second->Value())));
    EXPECT_THAT((std::vector{datum.channels(), datum.height(), datum.width()}),
                ElementsAre(2, 1, 1));
    EXPECT_THAT(datum.float_data(), ElementsAre(1, 2));
  }
}

TEST_F(BlobWriterTest, RefusesWhatCannotBeWritten) {
  EXPECT_THAT(Refusal({"a", "b"}, "LMDB"),
              HasSubstr("2 blobs and 1 outputs: LMDB needs one output per"));
  EXPECT_THAT(Refusal({"a", "b", "a"}), HasSubstr("blob 'a' is given twice"));
  EXPECT_THAT(Refusal({"a/b", "a"}), HasSubstr("blobs 'a' and 'a/b' cannot be in the same HDF5 "
                                               "file"));
  EXPECT_THAT(Refusal({"a//b"}), HasSubstr("blob 'a//b' cannot be the name of an HDF5 dataset"));
  const auto writer = Make({"a"}, "LMDB");
  const auto [code, message] = ErrorOf([&] { Add(*writer, 0, {1, 1, 1, 1, 1}, {1}); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(message, HasSubstr("blob 'a' has 5 axes"));
  const auto [missing, text] =
      ErrorOf([&] { MakeBlobWriter("HDF5", {"a"}, {folder_ / "no/out"}, false); });
  EXPECT_EQ(missing, ErrorCode::kCannotCreate);
  EXPECT_THAT(text, HasSubstr("no/out: cannot create"));
}

TEST_F(BlobWriterTest, NamesOfNumpysFilesChooseTheirFormats) {
  const std::string npz = folder_ / "all.npz";
  const auto writer = MakeBlobWriter("HDF5", {"a", "b"}, {npz}, false);
  Add(*writer, 0, {2, 2}, {1, 2, 3, 4});
  Add(*writer, 1, {2}, {5, 6});
  writer->Finish();
  EXPECT_THAT(OpenArrayFile(npz)->Array("a")->dims(), ElementsAre(2, 2));
  EXPECT_THAT(OpenArrayFile(npz)->Array("b")->dims(), ElementsAre(2));
  const std::vector<std::string> outs = {folder_ / "a.npy", folder_ / "b.npy"};
  const auto each = MakeBlobWriter("HDF5", {"a", "b"}, outs, false);
  Add(*each, 0, {2, 2}, {1, 2, 3, 4});
  Add(*each, 1, {2}, {5, 6});
  each->Finish();
  EXPECT_THAT(OpenArrayFile(outs[0])->Array("data")->dims(), ElementsAre(2, 2));
  EXPECT_THAT(OpenArrayFile(outs[1])->Array("data")->dims(), ElementsAre(2));
  EXPECT_THAT(ErrorOf([&] {
                MakeBlobWriter("HDF5", {"a", "b"}, {"a.npy"}, false);
              }).second,
              HasSubstr("2 blobs and 1 outputs: NumPy's .npy format needs one output per blob"));
  EXPECT_EQ(ErrorOf([&] {
              MakeBlobWriter("HDF5", {"a", "b"}, outs, false);
            }).first,
            ErrorCode::kCannotCreate);
}

}  // namespace
}  // namespace trainer
