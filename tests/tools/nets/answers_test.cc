// Commands that run a trained net: predict and test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "datum.pb.h"
#include "in_process.h"
#include "job.h"
#include "support/json_reader.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

// A job with trained weights, a net for predictions, and digits as images 0.pgm, 1.pgm, 2.pgm.
struct AnswerJob : Job {
  AnswerJob() {
    EXPECT_EQ(Train({"--run=run"}).exit_code, 0);
    WriteText(folder() / "deploy.prototxt", R"(name: "small"
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 3 dim: 1 dim: 28 dim: 28 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 10 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
)");
    const auto cursor = OpenCursor("LMDB", folder() / "data/test_lmdb");
    for (const char* name : {"0.pgm", "1.pgm", "2.pgm"}) {
      caffe::Datum datum;
      EXPECT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
      WriteText(folder() / name, "P5 28 28 255\n" + datum.data());
      cursor->Next();
    }
  }

  Outcome Run(std::vector<std::string> command) const { return RunHere(command, options()); }
  Outcome Predict(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"predict", "--weights=snap_iter_20.caffemodel",
                                        "--model=deploy.prototxt", "--scale=0.00390625"};
    command.insert(command.end(), more.begin(), more.end());
    return Run(command);
  }
};

TEST(PredictTest, PrintsAsCaffesExampleDoes) {
  const AnswerJob job;
  WriteText(job.folder() / "names.txt", "nil\nunit\npair\n3\n4\n5\n6\n7\n8\nnine lives\n");
  WriteText(job.folder() / "list.txt", "1.pgm 7\n2.pgm\n");
  const Outcome outcome =
      job.Predict({"--labels=names.txt", "--top=2", "0.pgm", "--list=list.txt"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      MatchesRegex("(---------- Prediction for [012]\\.pgm ----------\n"
                   "[01]\\.[0-9]{4} - \"[a-z0-9 ]+\"\n[01]\\.[0-9]{4} - \"[a-z0-9 ]+\"\n){3}"));
}

TEST(PredictTest, WeightsOfAnotherNetAreRefused) {
  const AnswerJob job;
  std::string net = ReadText(job.folder() / "deploy.prototxt");
  net.replace(net.find("\"ip\""), 4, "\"score\"");
  WriteText(job.folder() / "other.prototxt", net);
  const Outcome outcome = job.Predict({"--model=other.prototxt", "0.pgm"});
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("no layer")));
  WriteText(job.folder() / "more.prototxt",
            ReadText(job.folder() / "deploy.prototxt") +
                "layer { name: 'more' type: 'InnerProduct' bottom: 'prob' top: 'more' "
                "inner_product_param { num_output: 2 } }");
  const Outcome more = job.Predict({"--model=more.prototxt", "--output=more", "0.pgm"});
  EXPECT_EQ(more.exit_code, 65) << more.err;
  EXPECT_THAT(more.Errors(), ElementsAre(HasSubstr("the weights of 1 layer of the net are missing: "
                                                   "more; use the net")));
}

TEST(PredictTest, TheExitCodeIsThatOfTheFirstImageThatCannotBeRead) {
  const AnswerJob job;
  WriteText(job.folder() / "bad.jpg", "no image");
  const Outcome outcome = job.Predict({"0.pgm", "bad.jpg", "none.png", "1.pgm"});
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(StartsWith("bad.jpg: the file is not an image"), HasSubstr("none.png")));
  EXPECT_THAT(outcome.out, HasSubstr("Prediction for 0.pgm"));
  EXPECT_THAT(outcome.out, HasSubstr("Prediction for 1.pgm"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("bad.jpg")));
  const Outcome json = job.Predict({"--json", "none.png", "bad.jpg", "1.pgm"});
  EXPECT_EQ(json.exit_code, 66);
  const JsonValue images = ReadJson(json.out)["images"];
  EXPECT_THAT(images[0]["error"].text, HasSubstr("none.png"));
  EXPECT_EQ(images[1]["exit_code"].number, 65);
  EXPECT_EQ(images[2]["answers"].size(), 5u);
  EXPECT_EQ(images[2]["image"].text, "1.pgm");
}

TEST(PredictTest, WritesATableOfAFolderAndContinuesIt) {
  const AnswerJob job;
  std::filesystem::create_directory(job.folder() / "pics");
  for (const char* name : {"0.pgm", "1.pgm", "2.pgm"}) {
    std::filesystem::copy(job.folder() / name, job.folder() / "pics");
  }
  WriteText(job.folder() / "pics/bad.png", "no image");
  const std::vector<std::string> command = {"predict", "--run=run",   "--batch=2",
                                            "--top=1", "--out=p.csv", "pics"};
  const Outcome outcome = job.Run(command);
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(StartsWith("pics/bad.png: the file is not an image")));
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("the best test of the run"), HasSubstr("Classified 4 images in "),
                    HasSubstr(" images/s; p.csv has 4 rows; 1 could not be read\n")));
  const std::string whole = ReadText(job.folder() / "p.csv");
  EXPECT_THAT(whole, MatchesRegex("image,class_1,score_1,exit_code,error\n"
                                  "pics/0.pgm,[0-9],[0-9.e-]+,0,\npics/1.pgm,[0-9],[0-9.e-]+,0,\n"
                                  "pics/2.pgm,[0-9],[0-9.e-]+,0,\npics/bad.png,,,65,[^\n]*\n"));
  ExpectRefused(job, job.Run(command), 73, "", "p.csv");
  WriteText(job.folder() / "p.csv", whole.substr(0, whole.find("pics/2.pgm") + 5));
  std::vector<std::string> resume = command;
  resume.push_back("--resume");
  const Outcome rest = job.Run(resume);
  EXPECT_EQ(rest.exit_code, 65) << rest.err;
  EXPECT_THAT(rest.err, AllOf(HasSubstr("Resuming p.csv after 2 rows"),
                              HasSubstr("Classified 2 images in ")));
  EXPECT_EQ(ReadText(job.folder() / "p.csv"), whole);
  const Outcome done = job.Run(resume);
  EXPECT_EQ(done.exit_code, 65) << "the exit code of the whole file";
  EXPECT_THAT(done.err, HasSubstr("Classified 0 images in "));
  EXPECT_EQ(ReadText(job.folder() / "p.csv"), whole);
}

TEST(FeaturesTest, ARunNamesNetAndWeights) {
  const AnswerJob job;
  const Outcome made = job.Run({"features", "--run=run", "--blobs=ip", "--out=ip.npy", "0.pgm"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.err,
              AllOf(HasSubstr("the best test of the run"), HasSubstr("Wrote ip.npy: ip")));
  ExpectRefused(job, job.Run({"features", "--blobs=ip", "--out=i.npy", "0.pgm"}), 64, "",
                "needs --model=FILE, or --run=DIR");
  ExpectRefused(
      job,
      job.Run({"features", "--run=run", "--blobs=ip", "--out=i.npy", "--input=x.npy", "0.pgm"}), 64,
      "", "images, --input and --random each fill the Input layers; give only one");
  ExpectRefused(job,
                job.Run({"features", "--run=run", "--phase=TRAIN", "--blobs=ip", "--out=i.npy"}),
                64, "", "--phase is for --model");
  ExpectRefused(job,
                job.Run({"features", "--model=run/net.prototxt", "--shape=1,28,28", "--blobs=ip",
                         "--out=i.npy"}),
                64, "", "--shape is for --run");
}

TEST(PredictTest, SaysWhichWeightsOfARunItTakes) {
  const AnswerJob job;
  const Outcome best = job.Run({"predict", "--run=run", "0.pgm"});
  EXPECT_THAT(best.err, AllOf(HasSubstr("Using the weights of the best test of the run"),
                              Not(HasSubstr("The numbers are scores"))));
  ASSERT_EQ(job.Train({"--run=untested", "--set=test_interval=0", "--set=snapshot_prefix=\"u\""})
                .exit_code,
            0);
  EXPECT_THAT(job.Run({"predict", "--run=untested", "0.pgm"}).err,
              HasSubstr("Using the newest weights of the run, which has no tests, of iteration 20: "
                        "u_iter_20.caffemodel"));
  std::filesystem::remove(job.folder() / "u_iter_20.caffemodel");
  EXPECT_THAT(job.Run({"predict", "--run=untested", "0.pgm"}).err,
              HasSubstr("of iteration 10: u_iter_10.caffemodel"));
  std::filesystem::remove(job.folder() / "u_iter_10.caffemodel");
  ExpectRefused(job, job.Run({"predict", "--run=untested", "0.pgm"}), 66, "",
                "the snapshots of this run are not there, the newest was u_iter_20.caffemodel");
}

TEST(PredictTest, SaysThatScoresAreNoProbabilities) {
  const AnswerJob job;
  WriteText(job.folder() / "scores.prototxt",
            "layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: 1 dim: 1 "
            "dim: 28 dim: 28 } } }\n"
            "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' "
            "inner_product_param { num_output: 10 } }\n");
  EXPECT_THAT(
      job.Run({"predict", "--model=scores.prototxt", "--weights=snap_iter_20.caffemodel", "0.pgm"})
          .err,
      HasSubstr("The numbers are scores, not probabilities"));
}

TEST(PredictTest, NamesTheClassesOfARun) {
  const AnswerJob job;
  WriteText(job.folder() / "data/labels.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  EXPECT_THAT(job.Run({"predict", "--run=run", "--top=1", "--json", "0.pgm"}).out,
              HasSubstr("\"name\": \""));
  WriteText(job.folder() / "data/labels.txt", "0\n");
  const Outcome wrong = job.Run({"predict", "--run=run", "--top=1", "0.pgm"});
  EXPECT_EQ(wrong.exit_code, 0);
  EXPECT_THAT(wrong.err, HasSubstr("the classes have no names: data/labels.txt: the file has 1 "
                                   "names for 10 classes"));
  EXPECT_THAT(wrong.out, HasSubstr("\"class "));
}

TEST(PredictTest, RefusesWithASentence) {
  const AnswerJob job;
  const auto refused = [&](const std::vector<std::string>& more, int code,
                           const std::string& part) {
    ExpectRefused(job, job.Predict(more), code, "", part);
  };
  refused({}, 64, "needs images, or --list=FILE");
  refused({"0.pgm", "--resume"}, 64, "--resume continues a file; name it with --out=FILE");
  refused({"0.pgm", "--resume=p.csv"}, 64, "--resume=p.csv: the only value is auto");
  refused({"0.pgm", "--out=p.txt"}, 64, "--out=p.txt: the name must end in .csv");
  refused({"0.pgm", "--out=p.csv", "--json"}, 64, "--json prints the answers and --out writes");
  refused({"data"}, 65, "data: no images found");
  refused({"0.pgm", ""}, 64, "the name of an image is empty");
  refused({"0.pgm", "--run=run"}, 64, "--run and --model cannot both be given");
  WriteText(job.folder() / "x.onnx", "a model");
  ExpectRefused(job, job.Run({"predict", "--model=x.onnx", "0.pgm"}), 65, "",
                "x.onnx: this is a model in the format ONNX; make a net and weights of it");
  refused({"0.pgm", "--model=net.prototxt"}, 78,
          "net.prototxt: this net reads its own data, as for training; make a net with an Input "
          "layer from it: trainer deploy --model=net.prototxt");
  refused({"0.pgm", "--weights=none.caffemodel"}, 66, "none.caffemodel");
  refused({"0.pgm", "--mean_value=1,2"}, 64,
          "--mean_value has 2 values, but the net's input has 1 channel; ");
  refused({"0.pgm", "--mean=0.pgm"}, 65, "not a mean file");
  refused({"0.pgm", "--resize=20"}, 64, "smaller than the net's input, 28x28");
  WriteText(job.folder() / "names.txt", "one\ntwo\n");
  refused({"0.pgm", "--labels=names.txt"}, 65, "the file has 2 names for 10 classes");
}

TEST(TestVerbTest, PrintsMeansJsonOrTheConfusionMatrix) {
  const AnswerJob job;
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"test", "--model=net.prototxt",
                                        "--weights=snap_iter_20.caffemodel"};
    command.insert(command.end(), more.begin(), more.end());
    Outcome outcome = job.Run(command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  };
  EXPECT_THAT(run({}).out, MatchesRegex("accuracy = .*\nloss = .* loss\\)\n\nmetric .*"));
  const Outcome tables = run({"--confusion", "--iterations=2"});
  EXPECT_THAT(tables.out, StartsWith("accuracy "));
  EXPECT_THAT(tables.err, HasSubstr("] accuracy = ")) << "the log stays";
  const JsonValue json = ReadJson(run({"--confusion", "--json"}).out);
  EXPECT_EQ(json["iterations"].number, 3);
  EXPECT_EQ(json["records"].number, 40);
  const JsonValue& confusion = json["confusion"];
  EXPECT_EQ(confusion["records"].number, 40);
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

TEST(TestVerbTest, TestsARunAndLeavesItsResultsForTheReport) {
  const AnswerJob job;
  WriteText(job.folder() / "run/metrics.jsonl",
            ReadText(job.folder() / "run/metrics.jsonl") +
                R"({"event": "test", "iter": 10, "net": 0, "outputs": {"accuracy": 2}})"
                "\n");
  const Outcome outcome = job.Run({"test", "--run=run", "--iterations=2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Testing the weights of the best test of the run, accuracy 2 "
                                     "at iteration 10: snap_iter_10.caffemodel"));
  EXPECT_THAT(outcome.out, StartsWith("accuracy "));
  const JsonValue json = ReadJson(job.Run({"status", "run", "--json"}).out);
  EXPECT_EQ(json[0]["best"]["iter"].number, 10);
  EXPECT_EQ(json[0]["test_iter"].number, 10);
  const JsonValue confusion = ReadJson(ReadText(job.folder() / "run/confusion.json"));
  EXPECT_EQ(confusion["confusion"]["records"].number, 32);
  EXPECT_EQ(ReadJson(ReadText(job.folder() / "run/worst.json"))["pictures"].size(), 24u);
  ASSERT_EQ(job.Run({"report", "run", "--out=page.html"}).exit_code, 0);
  EXPECT_THAT(ReadText(job.folder() / "page.html"), HasSubstr("Images with the highest loss"));
  EXPECT_THAT(ReadText(job.folder() / "page.html"), HasSubstr("aria-label=\"ROC\""));
}

TEST(TestVerbTest, ComputesMetricsAndWritesPredictions) {
  const AnswerJob job;
  const Outcome outcome =
      job.Run({"test", "--run=run", "--metrics=macro_f1, auc", "--predictions=p.jsonl", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const JsonValue metrics = ReadJson(outcome.out)["metrics"];
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[1]["name"].text, "auc");
  EXPECT_LE(metrics[1]["low"].number, metrics[1]["value"].number);
  EXPECT_EQ(metrics[1]["each"].size(), 10u);
  EXPECT_THAT(ReadText(job.folder() / "p.jsonl"), StartsWith("{\"record\": 0, \"label\": "));
  EXPECT_THAT(job.Run({"test", "--run=run", "--metrics=none"}).out, Not(HasSubstr("interval")));
  EXPECT_EQ(job.Run({"test", "--run=run", "--metrics=f2"}).exit_code, 64);
}

}  // namespace
}  // namespace trainer
