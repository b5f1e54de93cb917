// What a trained net answers: trainer classify, and test with its confusion matrix.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datum.pb.h"
#include "job.h"
#include "support/json_reader.h"
#include "trainer/data/cursor.h"
#include "trainer/hdf5/appender.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// A job with trained weights, a net that answers, and digits as pictures 0.pgm, 1.pgm, ...
struct AnswerJob : Job {
  static constexpr int kPictures = 5;

  AnswerJob() {
    EXPECT_EQ(Train().exit_code, 0);
    WriteText(folder() / "deploy.prototxt", R"(name: "small"
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 3 dim: 1 dim: 28 dim: 28 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 10 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
)");
    const auto cursor = OpenCursor("LMDB", folder() / "data/test_lmdb");
    for (int i = 0; i < kPictures; ++i, cursor->Next()) {
      caffe::Datum datum;
      EXPECT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
      pixels += datum.data();
      WriteText(folder() / Name(i), "P5 28 28 255\n" + datum.data());
    }
  }
  static std::string Name(int i) { return std::to_string(i) + ".pgm"; }

  Outcome Run(const std::string& verb, const std::vector<std::string>& more) const {
    std::vector<std::string> command = {verb, "--weights=snap_iter_20.caffemodel"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, options());
  }
  Outcome Classify(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--model=deploy.prototxt", "--scale=0.00390625"});
    return Run("classify", more);
  }
  // What the net says to the pictures' numbers.
  std::vector<float> Scores() const {
    {
      Hdf5Appender input(folder() / "in.h5");
      std::vector<float> data;
      for (const char c : pixels) data.push_back(static_cast<unsigned char>(c) * 0.00390625f);
      input.Append("data", std::vector<int64_t>{kPictures, 1, 28, 28}, data);
    }
    const Outcome outcome = Run(
        "features", {"--model=deploy.prototxt", "--input=in.h5", "--blobs=prob", "--out=out.h5"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const Hdf5Reader reader(folder() / "out.h5");
    std::vector<float> scores(kPictures * 10);
    reader.Array("prob").Read(std::span<float>(scores));
    return scores;
  }

  std::string pixels;
};

TEST(ClassifyTest, GivesTheNetsScoresHighestFirst) {
  const AnswerJob job;
  const Outcome outcome =
      job.Classify({"--json", "--top=10", "0.pgm", "1.pgm", "2.pgm", "3.pgm", "4.pgm"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const JsonValue json = ReadJson(outcome.out);
  const std::vector<float> scores = job.Scores();
  ASSERT_EQ(json["images"].size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const JsonValue& picture = json["images"][i];
    EXPECT_EQ(picture["image"].text, AnswerJob::Name(static_cast<int>(i)));
    ASSERT_EQ(picture["answers"].size(), 10u);
    double last = 1;
    for (const JsonValue& answer : picture["answers"].items) {
      const auto c = static_cast<size_t>(answer["class"].number);
      EXPECT_NEAR(answer["score"].number, scores[i * 10 + c], 1e-6);
      EXPECT_LE(answer["score"].number, last);
      last = answer["score"].number;
    }
  }
}

TEST(ClassifyTest, PreparesImagesAsTheDeployFileSaysUnlessFlagsSayOtherwise) {
  const AnswerJob job;
  const auto deploy =
      RunProgram({"deploy", "--model=net.prototxt", "--out=made.prototxt"}, job.options());
  ASSERT_EQ(deploy.exit_code, 0) << deploy.err;
  const auto ask = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model=made.prototxt", "--json", "--top=1", "0.pgm"});
    return job.Run("classify", more);
  };
  const auto score = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return ReadJson(outcome.out)["images"][0]["answers"][0]["score"].number;
  };
  const Outcome plain = ask({});
  EXPECT_THAT(plain.err, HasSubstr("Images are prepared as made.prototxt says: "
                                   "--scale=0.00390625; command-line flags override it\n"));
  const double expected = score(job.Classify({"--json", "--top=1", "0.pgm"}));  // with --scale
  EXPECT_NEAR(score(plain), expected, 1e-6);
  const Outcome other = ask({"--scale=1"});
  EXPECT_NE(score(other), score(plain));
  EXPECT_THAT(other.err, Not(HasSubstr("Images ")));
  const Outcome unknown = job.Run("classify", {"--model=deploy.prototxt", "0.pgm"});
  EXPECT_THAT(unknown.err, HasSubstr("Images are used as pixels from 0 to 255, because no flag "
                                     "and no comment in deploy.prototxt"));
  // A mean lies beside the file, or is replaced by the command line's.
  const std::string text = ReadText(job.folder() / "made.prototxt");
  const size_t line = text.find('\n');
  const auto with = [&](const std::string& flags) {
    WriteText(
        job.folder() / "made.prototxt",
        "# To prepare images as its training did: trainer classify " + flags + text.substr(line));
  };
  with("--resize=28,28 --mean=a mean.binaryproto --scale=0.00390625");
  const Outcome absent = ask({});
  EXPECT_EQ(absent.exit_code, 66);
  EXPECT_THAT(absent.Errors(), ElementsAre(HasSubstr("a mean.binaryproto")));
  EXPECT_NEAR(score(ask({"--mean_value=0"})), expected, 1e-6);
  with("--resize=H,W --scale=0.5 (H,W: the size of the data set's images)");
  EXPECT_THAT(ask({}).Errors(), ElementsAre(HasSubstr("made.prototxt:1: the comment does not give "
                                                      "the size of the images")));
  EXPECT_EQ(ask({"--resize=32"}).exit_code, 0);
  with("--scale=half");
  const Outcome bad = ask({});
  EXPECT_EQ(bad.exit_code, 78);
  EXPECT_THAT(bad.Errors(), ElementsAre(HasSubstr("'half' is not a number")));
}

TEST(ClassifyTest, WithoutLabelsSaysTheNumberOfTheClass) {
  const AnswerJob job;
  const Outcome outcome = job.Classify({"--top=1", "0.pgm"});
  EXPECT_TRUE(Finds(outcome.out, R"(\n[01]\.\d{4} - "class \d"\n)")) << outcome.out << outcome.err;
}

TEST(ClassifyTest, PrintsAsCaffesExampleDoes) {
  const AnswerJob job;
  WriteText(job.folder() / "names.txt", "nil\nunit\npair\n3\n4\n5\n6\n7\n8\nnine lives\n");
  WriteText(job.folder() / "list.txt", "1.pgm 7\n2.pgm\n");
  const Outcome outcome =
      job.Classify({"--labels=names.txt", "--top=2", "0.pgm", "--list=list.txt"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              testing::MatchesRegex(
                  "(---------- Prediction for [012]\\.pgm ----------\n"
                  "[01]\\.[0-9]{4} - \"[a-z0-9 ]+\"\n[01]\\.[0-9]{4} - \"[a-z0-9 ]+\"\n){3}"));
}

TEST(ClassifyTest, OversamplingTakesTheMeanOfTenAnswers) {
  const AnswerJob job;
  const auto scores = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--json", "--top=10", "0.pgm", "1.pgm"};
    flags.insert(flags.end(), more.begin(), more.end());
    const Outcome outcome = job.Classify(flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return ReadJson(outcome.out);
  };
  const JsonValue json = scores({"--oversample", "--resize=32"});
  double sum = 0;
  for (const JsonValue& answer : json["images"][1]["answers"].items) sum += answer["score"].number;
  EXPECT_NEAR(sum, 1, 1e-5);
  // As large as the input, all parts are the picture and its mirror image.
  const JsonValue whole = scores({"--oversample", "--resize=28,28"});
  EXPECT_NE(whole["images"][0]["answers"][0]["score"].number,
            json["images"][0]["answers"][0]["score"].number);
}

TEST(ClassifyTest, OneBrokenPictureDoesNotKeepTheOthersFromTheirAnswers) {
  const AnswerJob job;
  WriteText(job.folder() / "bad.jpg", "no image");
  const Outcome outcome = job.Classify({"0.pgm", "bad.jpg", "none.png", "1.pgm"});
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(StartsWith("bad.jpg: the image"), HasSubstr("none.png")));
  EXPECT_THAT(outcome.out, HasSubstr("Prediction for 0.pgm"));
  EXPECT_THAT(outcome.out, HasSubstr("Prediction for 1.pgm"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("bad.jpg")));
  const Outcome json = job.Classify({"--json", "none.png", "bad.jpg", "1.pgm"});
  EXPECT_EQ(json.exit_code, 66);
  const JsonValue pictures = ReadJson(json.out)["images"];
  EXPECT_THAT(pictures[0]["error"].text, HasSubstr("none.png"));
  EXPECT_EQ(pictures[1]["exit_code"].number, 65);
  EXPECT_EQ(pictures[2]["answers"].size(), 5u);
}

TEST(ClassifyTest, RefusesWithASentence) {
  const AnswerJob job;
  const auto refused = [&](const std::vector<std::string>& more, int code,
                           const std::string& part) {
    ExpectRefused(job, job.Classify(more), code, "", part);
  };
  refused({}, 64, "needs images, or --list=FILE");
  refused({"0.pgm", "--model=net.prototxt"}, 78, "has 0 inputs");
  refused({"0.pgm", "--output=prop"}, 64, "the net has no output 'prop'. Did you mean 'prob'?");
  refused({"0.pgm", "--weights=none.caffemodel"}, 66, "none.caffemodel");
  refused({"0.pgm", "--mean_value=1,2"}, 64, "--mean_value: 2 values for 1 channels");
  refused({"0.pgm", "--mean=none"}, 66, "none");
  refused({"0.pgm", "--mean=0.pgm"}, 65, "not a mean file");
  refused({"0.pgm", "--scale=x"}, 64, "--scale=x: 'x' is not a number");
  refused({"0.pgm", "--resize=20"}, 64, "smaller than the net's input, 28x28");
  refused({"0.pgm", "--resize=1,2,3"}, 64, "give a height and a width");
  refused({"--list=none"}, 66, "none");
  WriteText(job.folder() / "empty", "\n\n");
  refused({"--list=empty"}, 65, "the list names no images");
  WriteText(job.folder() / "names.txt", "one\ntwo\n");
  refused({"0.pgm", "--labels=names.txt"}, 65, "the file has 2 names for 10 classes");
}

TEST(FeaturesOfPicturesTest, AreThoseThatClassifyShows) {
  const AnswerJob job;
  const Outcome outcome =
      job.Run("features", {"--model=deploy.prototxt", "--scale=0.00390625", "--blobs=prob",
                           "--out=f.h5", "0.pgm", "1.pgm", "2.pgm", "3.pgm", "4.pgm"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<float> got(50);
  Hdf5Reader(job.folder() / "f.h5").Array("prob").Read(std::span<float>(got));
  const std::vector<float> expected = job.Scores();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
  WriteText(job.folder() / "bad.jpg", "no image");
  const Outcome bad = job.Run(
      "features", {"--model=deploy.prototxt", "--blobs=prob", "--out=g.h5", "0.pgm", "bad.jpg"});
  ExpectRefused(job, bad, 65, "bad.jpg: the image");
  EXPECT_THAT(job.Files("g.h5"), IsEmpty());
}

TEST(ConfusionTest, AgreesWithTheAccuracyLayer) {
  const AnswerJob job;
  const Outcome outcome =
      job.Run("test", {"--model=net.prototxt", "--iterations=2", "--confusion", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const JsonValue json = ReadJson(outcome.out);
  EXPECT_EQ(json["net"].text, "small");
  EXPECT_EQ(json["iterations"].number, 2);
  EXPECT_EQ(json["outputs"][0]["name"].text, "accuracy");
  EXPECT_NEAR(json["outputs"][1]["mean"].number, json["loss"].number, 1e-6);
  const JsonValue& confusion = json["confusion"];
  EXPECT_EQ(confusion["records"].number, 32);
  EXPECT_NEAR(confusion["accuracy"].number, json["outputs"][0]["mean"].number, 1e-6);
  ASSERT_EQ(confusion["classes"].size(), 10u);
  std::map<int, double> labels, answers, hits;
  for (const JsonValue& cell : confusion["matrix"].items) {
    const auto label = static_cast<int>(cell["label"].number);
    const auto answer = static_cast<int>(cell["answer"].number);
    labels[label] += cell["count"].number;
    answers[answer] += cell["count"].number;
    if (label == answer) hits[label] += cell["count"].number;
  }
  for (int c = 0; c < 10; ++c) {
    const JsonValue& one = confusion["classes"][static_cast<size_t>(c)];
    EXPECT_EQ(one["records"].number, labels[c]);
    EXPECT_EQ(one["answers"].number, answers[c]);
    EXPECT_EQ(one["hits"].number, hits[c]);
    EXPECT_EQ(one["precision"].text, answers[c] == 0 ? "null" : "");
    EXPECT_NEAR(one["precision"].number, answers[c] == 0 ? 0 : hits[c] / answers[c], 1e-9);
  }
}

// The test data are 40 records, which are two whole batches and one of 8.
TEST(OnePassTest, WithoutIterationsEachRecordCountsOnce) {
  const AnswerJob job;
  const Outcome outcome = job.Run("test", {"--model=net.prototxt", "--confusion", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const JsonValue json = ReadJson(outcome.out);
  EXPECT_EQ(json["iterations"].number, 3);
  EXPECT_EQ(json["records"].number, 40);
  EXPECT_EQ(json["confusion"]["records"].number, 40);
  EXPECT_NEAR(json["confusion"]["accuracy"].number, json["outputs"][0]["mean"].number, 1e-6);
  const Outcome one =
      job.Run("test", {"--model=net.prototxt", "--confusion", "--json", "--iterations=1", "--set",
                       "layer[digits,TEST].data_param.batch_size=40"});
  const JsonValue whole = ReadJson(one.out);
  EXPECT_EQ(whole["confusion"]["hits"].number, json["confusion"]["hits"].number);
  EXPECT_NEAR(whole["loss"].number, json["loss"].number, 1e-6);
}

TEST(OnePassTest, ANumberThatDoesNotFitIsAWarning) {
  const AnswerJob job;
  const Outcome outcome = job.Run("test", {"--model=net.prototxt", "--iterations=5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("--iterations 5 with batches of 16 reads 80 records, and the data of layer "
                        "'digits' has 40: some records count more often than others; without "
                        "--iterations, a test reads each record exactly"));
  EXPECT_THAT(outcome.out, AllOf(StartsWith("accuracy = "), HasSubstr("\nloss = ")));
}

TEST(ConfusionTest, PrintsTablesWithNames) {
  const AnswerJob job;
  WriteText(job.folder() / "names.txt", "nil\nunit\npair\n3\n4\n5\n6\n7\n8\nnine\n");
  const Outcome outcome = job.Run(
      "test", {"--model=net.prototxt", "--iterations=2", "--confusion", "--labels=names.txt"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("accuracy "));
  EXPECT_THAT(outcome.out, HasSubstr(" of 32 records; mean recall of the classes "));
  EXPECT_THAT(outcome.out, HasSubstr("\n    0  nil "));
  EXPECT_THAT(outcome.out, HasSubstr("\nlabel  0  1  2"));
  EXPECT_THAT(outcome.out, HasSubstr("The most frequent mistakes:"));
  EXPECT_THAT(outcome.err, HasSubstr("] accuracy = ")) << "the log stays";
}

TEST(ConfusionTest, OfManyClassesShowsTheWorst) {
  AnswerJob job;
  job.net = Edited(job.net, "num_output: 10", "num_output: 300");
  ASSERT_EQ(job.Train().exit_code, 0);
  const Outcome outcome =
      job.Run("test", {"--model=net.prototxt", "--iterations=2", "--confusion"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("The classes with the lowest recall, of 300:"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("answer (columns)")));
  EXPECT_LT(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 60);
}

TEST(ConfusionTest, ComparesNamedBlobsAndThoseOfALoss) {
  AnswerJob job;
  job.net = Edited(job.net, "type: \"Accuracy\"", "type: \"ArgMax\"");
  job.net = Edited(job.net, "  bottom: \"label\"\n  top: \"accuracy\"", "  top: \"best\"");
  job.Write();
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--model=net.prototxt", "--iterations=2", "--json",
                                      "--confusion"};
    flags.insert(flags.end(), more.begin(), more.end());
    return job.Run("test", flags);
  };
  const Outcome loss = run({});
  ASSERT_EQ(loss.exit_code, 0) << loss.err;
  const Outcome named = run({"--scores=ip", "--label=label"});
  EXPECT_EQ(named.out, loss.out);
  ExpectRefused(job, run({"--scores=ipp", "--label=label"}), 64,
                "--scores: the net has no blob 'ipp'.", "Did you mean 'ip'?");
  ExpectRefused(job, run({"--scores=ip"}), 64, "--scores and --label need each other");
  ExpectRefused(job, run({"--scores=ip", "--label=data"}), 78, "labels 'data' of shape");
  job.net = Edited(job.net, "type: \"SoftmaxWithLoss\"\n  bottom: \"ip\"\n  bottom: \"label\"",
                   "type: \"Reduction\"\n  bottom: \"ip\"");
  job.Write();
  ExpectRefused(job, run({}), 78, "net.prototxt", "name the two blobs with --scores and --label");
}

// Of a run's folder.
struct TestRunTest : testing::Test {
  Outcome Test(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {"test", "--run=run"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, job.options());
  }
  Job job;
};

TEST_F(TestRunTest, TakesTheWeightsOfTheBestTest) {
  job.Write();
  ASSERT_EQ(job.Train({"--run=run"}).exit_code, 0);
  WriteText(job.folder() / "run/metrics.jsonl",
            ReadText(job.folder() / "run/metrics.jsonl") +
                R"({"event": "test", "iter": 10, "net": 0, "outputs": {"accuracy": 2}})"
                "\n");
  const Outcome outcome = Test();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Testing the weights of the best test of the run, accuracy 2 "
                                     "at iteration 10: snap_iter_10.caffemodel"));
  const Outcome status = RunProgram({"status", "run", "--json"}, job.options());
  const JsonValue json = ReadJson(status.out);
  EXPECT_EQ(json[0]["best"]["iter"].number, 10) << status.out;
  EXPECT_EQ(json[0]["test_iter"].number, 10);
}

TEST_F(TestRunTest, LeavesConfusionAndWorstImagesForTheReport) {
  job.Write();
  ASSERT_EQ(job.Train({"--run=run"}).exit_code, 0);
  const Outcome outcome = Test({"--iterations=2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("accuracy "));
  const JsonValue worst = ReadJson(ReadText(job.folder() / "run/worst.json"));
  const JsonValue confusion = ReadJson(ReadText(job.folder() / "run/confusion.json"));
  EXPECT_EQ(confusion["confusion"]["records"].number, 32);
  const auto& pictures = worst["pictures"].items;
  ASSERT_EQ(pictures.size(), 24u);
  for (size_t i = 0; i + 1 < pictures.size(); ++i) {
    EXPECT_GE(pictures[i]["loss"].number, pictures[i + 1]["loss"].number);
  }
  EXPECT_NE(pictures[0]["label"].number, pictures[0]["answer"].number);
  EXPECT_THAT(pictures[0]["png"].text, StartsWith("iVBORw0KGgo"));
  ASSERT_EQ(RunProgram({"report", "run", "--out=page.html"}, job.options()).exit_code, 0);
  EXPECT_THAT(ReadText(job.folder() / "page.html"), HasSubstr("Images with the highest loss"));
}

TEST_F(TestRunTest, TakesTheNewestWeightsAndTheBatchesOfTheSolver) {
  job.Write();
  ASSERT_EQ(job.Train({"--run=run"}).exit_code, 0);
  const Outcome outcome = Test();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.err, "Running for [0-9]+ iterations")) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("snap_iter_20.caffemodel"));
  ExpectRefused(job, Test({"--model=net.prototxt"}), 64, "--run and --model cannot both be given");
}

TEST_F(TestRunTest, SaysWhatIsMissing) {
  job.Write();
  ExpectRefused(job, Test(), 66, (job.folder() / "run").c_str());
  ASSERT_EQ(job.Train({"--run=run", "--set", "snapshot_after_train=false", "--set", "snapshot=0"})
                .exit_code,
            0);
  ExpectRefused(job, Test(), 66, (job.folder() / "run").c_str(), "has not saved a snapshot yet");
  ExpectRefused(job, RunProgram({"test"}, job.options()), 64, "'trainer test' needs --model=FILE",
                "or --run=DIR");
}

TEST(TestJsonTest, GivesTheMeansOfAllOutputs) {
  const AnswerJob job;
  const Outcome outcome = job.Run("test", {"--model=net.prototxt", "--iterations=3", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const JsonValue json = ReadJson(outcome.out);
  ASSERT_EQ(json["outputs"].size(), 2u);
  EXPECT_EQ(json["outputs"][1]["name"].text, "loss");
  EXPECT_EQ(json["outputs"][1]["loss_weight"].number, 1);
  EXPECT_EQ(json["outputs"][0]["loss_weight"].number, 0);
}

}  // namespace
}  // namespace trainer
