#include "trainer/datasets/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

std::vector<std::string> TextsOfAudit(const DataAudit& audit) {
  std::vector<std::string> texts;
  for (const Error& error : audit.errors) texts.emplace_back(error.what());
  return texts;
}

class AuditTest : public testing::Test {
 protected:
  DataAudit Run(const std::string& text, const AuditLimits& limits = {},
                std::vector<int> label_tops = {1}) const {
    return AuditData(KeptLayer(text), caffe::TRAIN, label_tops, limits);
  }
  std::string Data(const std::string& name, const std::string& backend = "LMDB",
                   const std::string& more = "") const {
    return "name: 'd' type: 'Data' top: 'x' top: 'label' data_param { batch_size: 4 source: '" +
           (folder_ / name) + "' backend: " + backend + " } " + more;
  }

  TempFolder folder_;
};

TEST_F(AuditTest, ASmallDatabaseIsReadWhole) {
  for (const char* backend : {"LMDB", "LEVELDB"}) {
    Records records = NumberedRecords(9);
    for (int i = 0; i < 9; ++i) {
      records[static_cast<size_t>(i)].second = MakeDatum(1, 1, 1, "x", i % 3).SerializeAsString();
    }
    WriteDb(backend, folder_ / backend, records);
    const DataAudit audit = Run(Data(backend, backend));
    EXPECT_EQ(audit.source, folder_ / backend);
    EXPECT_EQ(audit.batch_size, 4);
    EXPECT_EQ(audit.records, 9);
    EXPECT_EQ(audit.examined, 9);
    EXPECT_FALSE(audit.estimated);
    EXPECT_TRUE(audit.all_labels);
    EXPECT_FALSE(audit.sorted);
    EXPECT_THAT(audit.labels, ElementsAre(Key(0), Key(1), Key(2)));
    EXPECT_EQ(audit.labels.at(2).count, 3);
    EXPECT_EQ(audit.labels.at(2).first, "record '00000002'");
    EXPECT_THAT(audit.errors, IsEmpty());
  }
}

TEST_F(AuditTest, OfALargeDatabaseRecordsFromAllOverAreRead) {
  for (const char* backend : {"LMDB", "LEVELDB"}) {
    WriteDb(backend, folder_ / backend, NumberedRecords(100));
    AuditLimits limits;
    limits.whole_bytes = 0;
    limits.sample = 11;
    const DataAudit audit = Run(Data(backend, backend), limits);
    EXPECT_EQ(audit.examined, 11);
    EXPECT_FALSE(audit.all_labels);
    EXPECT_THAT(audit.labels, ElementsAre(Key(0), Key(9), Key(19), Key(29), Key(39), Key(49),
                                          Key(59), Key(69), Key(79), Key(89), Key(99)));
    EXPECT_EQ(audit.estimated, backend == std::string("LEVELDB"));
    EXPECT_GE(audit.records, audit.estimated ? 50 : 100);
    EXPECT_LE(audit.records, audit.estimated ? 2000 : 100);
  }
}

TEST_F(AuditTest, ABalancedEpochCountsAllLabelsOfALargeDatabase) {
  for (const char* backend : {"LMDB", "LEVELDB"}) {
    Records records = NumberedRecords(100);
    for (int i = 0; i < 100; ++i) {
      records[static_cast<size_t>(i)].second = MakeDatum(1, 1, 1, "x",
                                                         i < 93   ? 0
                                                         : i < 98 ? 1
                                                                  : 4)
                                                   .SerializeAsString();
    }
    WriteDb(backend, folder_ / backend, records);
    AuditLimits limits;
    limits.whole_bytes = 0;
    limits.sample = 11;
    const std::string text = Data(backend, Join(backend, " sampling: BALANCED"));
    for (const DataAudit& audit : {Run(text, limits), Run(text)}) {
      EXPECT_TRUE(audit.all_labels);
      EXPECT_FALSE(audit.sorted) << "the order is another one";
      EXPECT_FALSE(audit.estimated);
      EXPECT_THAT(audit.labels, ElementsAre(Key(0), Key(1), Key(4)));
      EXPECT_EQ(audit.labels.at(1).count, 5);
      EXPECT_EQ(audit.labels.at(4).first, "record '00000098'");
      EXPECT_EQ(audit.records, 100);
      EXPECT_EQ(audit.EpochRecords(), 3 * 93);
    }
    EXPECT_EQ(Run(Data(backend, backend)).EpochRecords(), 100);
  }
}

TEST_F(AuditTest, KeysWithoutNumbersAreSpreadToo) {
  Records records;
  for (char c = 'a'; c <= 'z'; ++c) {
    records.emplace_back(std::string("key-") + c,
                         MakeDatum(1, 1, 1, "x", c - 'a').SerializeAsString());
  }
  WriteDb("LMDB", folder_ / "db", records);
  AuditLimits limits;
  limits.whole_bytes = 0;
  limits.sample = 6;
  const DataAudit audit = Run(Data("db"), limits);
  EXPECT_EQ(audit.examined, 6);
  EXPECT_THAT(audit.labels, ElementsAre(Key(0), Key(5), Key(10), Key(15), Key(20), Key(25)));
}

TEST_F(AuditTest, BadRecordsAreNamedAndTheRestCounted) {
  Records records = NumberedRecords(12);
  records[1].second = "no datum";
  records[3].second = MakeDatum(1, 2, 2, "abcd", 3).SerializeAsString();
  caffe::Datum unlabelled = MakeDatum(1, 1, 1, "x", 0), nan = MakeDatum(1, 1, 1, "", 0);
  unlabelled.clear_label();
  nan.clear_data();
  nan.add_float_data(NAN);
  records[5].second = unlabelled.SerializeAsString();
  records[7].second = nan.SerializeAsString();
  for (size_t i : {8u, 9u, 10u}) records[i].second = "";
  WriteDb("LMDB", folder_ / "db", records);
  const DataAudit audit = Run(Data("db"));
  EXPECT_THAT(TextsOfAudit(audit),
              ElementsAre(HasSubstr("record '00000001'"),
                          HasSubstr("record '00000003' gives a 1x2x2 image, but record '00000000' "
                                    "gave 1x1x1"),
                          HasSubstr("record '00000005' has no label"),
                          HasSubstr("record '00000007' becomes nan in the net"),
                          HasSubstr("record '00000008'")));
  EXPECT_EQ(audit.errors[3].code(), ErrorCode::kDiverged);
  EXPECT_EQ(audit.more_errors, 2);
  EXPECT_EQ(audit.examined, 5);
}

TEST_F(AuditTest, TheTransformsRefusalIsARecordsError) {
  WriteDb("LMDB", folder_ / "db", NumberedRecords(3));
  const DataAudit audit = Run(Data("db", "LMDB", "transform_param { crop_size: 2 }"));
  EXPECT_THAT(TextsOfAudit(audit),
              ElementsAre(HasSubstr("a crop of 2x2 is larger than record '00000000'")))
      << "the mistake is one, whatever the number of records";
  EXPECT_EQ(audit.same_errors, 2);
  EXPECT_EQ(audit.more_errors, 0);
}

TEST_F(AuditTest, RecordsInTheOrderOfTheirLabelsAreNoticed) {
  Records records = NumberedRecords(12);
  for (int i = 0; i < 12; ++i) {
    records[static_cast<size_t>(i)].second = MakeDatum(1, 1, 1, "x", i / 4).SerializeAsString();
  }
  WriteDb("LMDB", folder_ / "db", records);
  EXPECT_TRUE(Run(Data("db")).sorted);
}

TEST_F(AuditTest, ADamagedTableIsAnError) {
  WriteDb("LEVELDB", folder_ / "db", NumberedRecords(20000));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "db")) {
    if (entry.path().extension() != ".ldb") continue;
    std::string bytes = ReadBytes(entry.path().string());
    char& byte = bytes[bytes.size() * 3 / 4];  // outside the block of the first record
    byte = static_cast<char>(~byte);
    WriteBytes(entry.path().string(), bytes);
  }
  EXPECT_THAT(TextsOfAudit(Run(Data("db", "LEVELDB"))),
              ElementsAre(HasSubstr("the database is damaged")));
}

TEST_F(AuditTest, OtherLayersReadNothing) {
  EXPECT_EQ(Run("name: 'i' type: 'Input' top: 'x'").source, "");
  EXPECT_THAT(Catch([&] { Run(Data("none")); }), Refuses(ErrorCode::kNoInput, "none"));
}

class ImageAuditTest : public AuditTest {
 protected:
  ImageAuditTest() {
    for (const char* name : {"rgb.png", "gray.jpg"}) WriteBytes(folder_ / name, Picture(name));
  }
  std::string Images(const std::string& list, const std::string& more) const {
    WriteBytes(folder_ / "list.txt", list);
    return "name: 'i' type: 'ImageData' top: 'x' top: 'label' image_data_param { batch_size: 2 "
           "source: '" +
           (folder_ / "list.txt") + "' root_folder: '" + (folder_ / "") + "' " + more + " }";
  }
};

TEST_F(ImageAuditTest, AllLabelsAndSomePicturesAreLookedAt) {
  const DataAudit audit =
      Run(Images("rgb.png 1\ngray.jpg 0\nrgb.png 3\n", "new_height: 4 new_width: 5"));
  EXPECT_EQ(audit.records, 3);
  EXPECT_EQ(audit.examined, 3);
  EXPECT_TRUE(audit.all_labels);
  EXPECT_THAT(audit.labels, ElementsAre(Key(0), Key(1), Key(3)));
  EXPECT_EQ(audit.labels.at(3).first, "line 3");
  EXPECT_THAT(audit.errors, IsEmpty());
}

TEST_F(ImageAuditTest, MissingAndBrokenFilesAreNamedByTheirLine) {
  WriteBytes(folder_ / "text.jpg", "no image");
  std::string list = "rgb.png 0\nnone.png 1\ntext.jpg 0\n";
  for (int i = 0; i < 40; ++i) list += "rgb.png 0\n";
  list += "gone.png 0\nrgb.png 1\n";
  AuditLimits limits;
  limits.pictures = 2;  // the first and the last picture
  const DataAudit audit = Run(Images(list, "new_height: 4 new_width: 5"), limits);
  EXPECT_EQ(audit.examined, 2);
  EXPECT_THAT(TextsOfAudit(audit),
              ElementsAre(HasSubstr("list.txt:2: the file '" + (folder_ / "none.png")),
                          HasSubstr("list.txt:44: the file '" + (folder_ / "gone.png"))));
  EXPECT_EQ(audit.errors[0].code(), ErrorCode::kNoInput);
  const DataAudit broken = Run(Images("text.jpg 0\nrgb.png 1\n", ""));
  EXPECT_THAT(TextsOfAudit(broken), ElementsAre(HasSubstr("list.txt:1: image")));
}

TEST_F(ImageAuditTest, PicturesOfSeveralSizesAreRefused) {
  WriteBytes(folder_ / "small.pgm", "P5 2 1 255\nab");
  EXPECT_THAT(TextsOfAudit(Run(Images("rgb.png 0\nsmall.pgm 1\n", ""))),
              ElementsAre(HasSubstr("record 'small.pgm' gives a 3x1x2 image, but record 'rgb.png' "
                                    "gave 3x7x11")));
}

TEST_F(ImageAuditTest, AShuffledListMayBeSorted) {
  const std::string list = "rgb.png 0\nrgb.png 0\nrgb.png 0\nrgb.png 1\nrgb.png 1\nrgb.png 1\n";
  EXPECT_TRUE(Run(Images(list, "")).sorted);
  EXPECT_FALSE(Run(Images(list, "shuffle: true")).sorted);
}

TEST_F(ImageAuditTest, WindowsGiveTheirLabelsAndPictures) {
  WriteBytes(folder_ / "windows.txt",
             "# 0\nrgb.png\n3\n7\n11\n3\n2 0.9 0 0 3 3\n5 0.1 1 1 2 2\n7 0.5 0 0 1 1\n"
             "# 1\nnone.png\n3\n7\n11\n0\n");
  const DataAudit audit =
      Run("name: 'w' type: 'WindowData' top: 'x' top: 'label' window_data_param { batch_size: 2 "
          "fg_threshold: 0.6 bg_threshold: 0.3 source: '" +
          (folder_ / "windows.txt") + "' root_folder: '" + (folder_ / "") + "' }");
  EXPECT_THAT(audit.labels, ElementsAre(Key(0), Key(2)));
  EXPECT_EQ(audit.records, 0);
  EXPECT_THAT(TextsOfAudit(audit), ElementsAre(HasSubstr("none.png")));
}

class Hdf5AuditTest : public AuditTest {
 protected:
  std::string Rows(const std::vector<float>& data, const std::vector<float>& labels) const {
    Hdf5Appender file(folder_ / "rows.h5");
    const std::vector<int64_t> dims = {static_cast<int64_t>(labels.size())};
    file.Append("x", dims, data);
    file.Append("label", dims, labels);
    file.Close();
    WriteBytes(folder_ / "list.txt", "rows.h5\n");
    return "name: 'h' type: 'HDF5Data' top: 'x' top: 'label' hdf5_data_param { batch_size: 2 "
           "source: '" +
           (folder_ / "list.txt") + "' }";
  }
};

TEST_F(Hdf5AuditTest, AllLabelsAndTheEndsOfTheDataAreRead) {
  const DataAudit audit = Run(Rows({1, 2, 3}, {0, 0.5f, 2}));
  EXPECT_EQ(audit.records, 3);
  EXPECT_EQ(audit.batch_size, 2);
  EXPECT_TRUE(audit.all_labels);
  EXPECT_THAT(audit.labels, ElementsAre(Key(0), Key(0.5f), Key(2)));
  EXPECT_EQ(audit.labels.at(2).first, "row 2 of 'label' in " + (folder_ / "rows.h5"));
  EXPECT_THAT(audit.errors, IsEmpty());
  const std::string bad = Rows({1, 2, INFINITY}, {0, NAN, 2});
  EXPECT_THAT(TextsOfAudit(Run(bad)),
              ElementsAre(HasSubstr("row 2 of 'x'"), HasSubstr("the label in row 1 of 'label'")));
  EXPECT_THAT(Run(bad, {}, {}).labels, IsEmpty()) << "no loss reads them";
}

}  // namespace
}  // namespace trainer
