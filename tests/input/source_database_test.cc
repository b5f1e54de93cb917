// Tests that a Data layer opens its source as its fields say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "input/every_source.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MakePrefetcherTest : public testing::Test {
 protected:
  // Writes a database of `records` numbered records and returns its folder.
  std::string Database(int records) const {
    WriteDb("LMDB", folder_ / "db", NumberedRecords(records));
    return folder_ / "db";
  }
  std::unique_ptr<BatchQueue> Make(const std::string& text, caffe::Phase phase = caffe::TRAIN) {
    return OpenDatabase(KeptLayer("name: \"d\"\ntype: \"Data\"\n" + text),
                        {phase, PhiloxKey{1, 2}, Rank{1, 2}});
  }
  Thrown Refusal(const std::string& fields) {
    return Catch([&] { Make("data_param {\nsource: \"s\"\n" + fields + "\n}"); });
  }

  TempFolder folder_;
};

TEST_F(MakePrefetcherTest, ReadsTheLayersFields) {
  const std::string source = Database(6);
  const std::string text = "top: \"data\" top: \"label\" data_param { source: \"" + source +
                           "\" backend: LMDB batch_size: 2 }";
  const auto train = Make(text);
  EXPECT_EQ(train->shape(), (Shape{2, 1, 1, 1}));
  EXPECT_THAT(EverySource::Records(*train, 2), ElementsAre(1, 3, 5, 1));
  const auto test = Make(text, caffe::TEST);  // every rank tests all records
  EXPECT_THAT(EverySource::Records(*test, 2), ElementsAre(0, 1, 2, 3));
}

TEST_F(MakePrefetcherTest, DecodesEncodedRecordsAsForceColorAsks) {
  Records records;
  for (const char* name : {"rgb.jpg", "gray.jpg"}) {
    caffe::Datum datum;
    datum.set_encoded(true);
    datum.set_data(Picture(name));
    datum.set_label(1);
    records.emplace_back(name, datum.SerializeAsString());
  }
  const std::string path = folder_ / "encoded";
  WriteDb("LMDB", path, records);
  const auto make = [&](const std::string& force) {
    return Make("data_param { source: \"" + path + "\" backend: LMDB batch_size: 2 } " +
                    "transform_param { " + force + " }",
                caffe::TEST);
  };
  EXPECT_EQ(make("force_color: true")->shape(), (Shape{2, 3, 7, 11}));
  const auto gray = make("force_gray: true");
  EXPECT_EQ(gray->shape(), (Shape{2, 1, 7, 11}));
  EXPECT_EQ(gray->Next().output(0).size(), 2u * 7 * 11);
  const auto stored = make("");
  EXPECT_THAT(Catch([&] { stored->Next(); }),
              Refuses(ErrorCode::kData,
                      "record 'rgb.jpg' gives a 3x7x11 image, but record "
                      "'gray.jpg' gave 1x7x11"));
}

TEST_F(MakePrefetcherTest, GivesNoLabelsForOneTop) {
  const auto source = Make("top: \"data\" data_param { source: \"" + Database(6) +
                           "\" backend: LMDB batch_size: 2 }");
  EXPECT_EQ(source->Next().num_outputs(), 1);
}

TEST_F(MakePrefetcherTest, RefusesBadFieldsAtTheirLines) {
  EXPECT_THAT(Catch([&] { Make("data_param { batch_size: 1 }"); }),
              Refuses(ErrorCode::kConfig, "source is missing; give the path of the database"));
  EXPECT_THAT(Refusal("batch_size: 0"),
              Refuses(ErrorCode::kConfig, "batch_size is 0; it must be 1 to"));
  EXPECT_THAT(Refusal("batch_size: 0").text, HasSubstr("net.prototxt:5:"));
  EXPECT_THAT(Refusal("").text, HasSubstr("batch_size is 0"));
  EXPECT_THAT(Refusal("batch_size: 1 prefetch: 0"),
              Refuses(ErrorCode::kConfig, "prefetch is 0; it must be 1 to 1024"));
  EXPECT_THAT(Refusal("batch_size: 4294967295").code, static_cast<int>(ErrorCode::kConfig));
}

TEST_F(MakePrefetcherTest, TakesAsManyThreadsAsTheFieldSays) {
  const std::string source = Database(6);
  const auto threads = [&](const std::string& field) {
    return Make("data_param { source: \"" + source + "\" backend: LMDB batch_size: 2 " + field +
                " }")
        ->counters()
        .threads;
  };
  EXPECT_EQ(threads("threads: 3"), 3);
  EXPECT_EQ(threads("parser_threads: 2"), 2);
  EXPECT_EQ(threads(""), 1);
  EXPECT_THAT(Refusal("batch_size: 1 threads: 257"),
              Refuses(ErrorCode::kConfig, "threads is 257; it must be at most 256"));
}

}  // namespace
}  // namespace trainer
