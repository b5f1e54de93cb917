#include "trainer/config/text/prototxt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "config/config_testing.h"
#include "net.pb.h"
#include "solver.pb.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string NetError(const std::string& text) {
  caffe::NetParameter net;
  return CatchConfig([&] { ParseTextString("n.prototxt", text, &net); }).text;
}

std::string SolverError(const std::string& text) {
  caffe::SolverParameter solver;
  return CatchConfig([&] { ParseTextString("s.prototxt", text, &solver); }).text;
}

TEST(PrototxtTest, ReadsWhatCaffeReads) {
  caffe::NetParameter net;
  ParseTextString("n.prototxt",
                  "\xEF\xBB\xBFname: 'a' \"b\"  # a comment, \xC3\xA4\r\n"
                  "layer: { type: \"Pooling\" pooling_param < pool: 1; stride: 2, > }\n"
                  "layer { convolution_param { kernel_size: [3, 5] engine: CUDNN } }",
                  &net);
  EXPECT_EQ(net.name(), "ab");
  EXPECT_EQ(net.layer(0).pooling_param().pool(), caffe::PoolingParameter::AVE);
  EXPECT_EQ(net.layer(1).convolution_param().kernel_size(1), 5u);
}

TEST(PrototxtTest, KnowsTheLineOfEachField) {
  caffe::NetParameter net;
  const auto parsed = ParseTextString("n.prototxt", "name: 'x'\n  force_backward: true", &net);
  const auto* field = net.GetDescriptor()->FindFieldByName("force_backward");
  EXPECT_EQ(parsed->tree.GetLocation(field, -1).line, 1);
  EXPECT_EQ(parsed->tree.GetLocation(field, -1).column, 2);
}

TEST(PrototxtTest, AnUnknownFieldNamesTheNearestAndShowsTheLine) {
  EXPECT_EQ(NetError("layer {\n  convolution_param {\n    strid: 2\n  }\n}\n"),
            "n.prototxt:3:5: convolution_param has no field 'strid'. Did you mean 'stride'?\n"
            "  strid: 2\n"
            "  ^");
  EXPECT_EQ(SolverError("max_iter: 1 bas_lr: 0.1"),
            "s.prototxt:1:13: a solver has no field 'bas_lr'. Did you mean 'base_lr'?\n"
            "  max_iter: 1 bas_lr: 0.1\n"
            "              ^");
  EXPECT_THAT(NetError("nam : 'x'"), StartsWith("n.prototxt:1:1: a net has no field 'nam'. Did"));
}

TEST(PrototxtTest, AFieldOfAnotherTrainerNamesOurs) {
  EXPECT_THAT(SolverError("learning_rate: 0.1"),
              StartsWith("s.prototxt:1:1: a solver has no field 'learning_rate'. Did you mean "
                         "'base_lr'?\n"));
  EXPECT_THAT(SolverError("optimizer: 'Adam'"), HasSubstr("Did you mean 'type'?"));
  EXPECT_THAT(SolverError("epochs: 3"),
              HasSubstr("a solver has no field 'epochs'. Did you mean 'max_epoch'?"));
  EXPECT_THAT(SolverError("batch_size: 3"),
              HasSubstr("The batch size is batch_size in the net's data layer; 'trainer train "
                        "--batch=N' sets it for one run"));
  EXPECT_THAT(NetError("layer { convolution_param { filters: 3 } }"),
              HasSubstr("convolution_param has no field 'filters'. Did you mean 'num_output'?"));
  EXPECT_THAT(NetError("layer { data_param { batch: 3 } }"),
              HasSubstr("data_param has no field 'batch'. Did you mean 'batch_size'?"));
  EXPECT_THAT(NetError("layer { pooling_param { pool: AVERAGE } }"),
              HasSubstr("pool has no value 'AVERAGE'. Did you mean 'AVE'?"));
}

TEST(PrototxtTest, TabsCountToTheNextMultipleOfEight) {
  EXPECT_EQ(NetError("layer { name: 'x'\ttip: 1 }"),
            "n.prototxt:1:25: layer has no field 'tip'. Did you mean 'top'?\n"
            "  layer { name: 'x'       tip: 1 }\n"
            "                          ^");
}

TEST(PrototxtTest, AFieldOfAnInnerMessageNamesItsHome) {
  EXPECT_THAT(NetError("layer { negative_slope: 1 }"),
              HasSubstr("layer has no field 'negative_slope'. It is a field of relu_param."));
  EXPECT_THAT(NetError("layer { relu_param { quux: 1 } }"),
              HasSubstr("relu_param has no field 'quux'. Its fields are negative_slope, engine."));
}

TEST(PrototxtTest, AnUnknownValueListsAllAndTheNearest) {
  EXPECT_EQ(NetError("layer { pooling_param {\n pool: AVG } }"),
            "n.prototxt:2:8: pool has no value 'AVG'. Did you mean 'AVE'? It is one of MAX, AVE, "
            "STOCHASTIC.\n"
            "  pool: AVG } }\n"
            "        ^");
  EXPECT_THAT(NetError("layer { pooling_param { pool: 9 } }"),
              HasSubstr("no value '9'. It is one"));
  EXPECT_THAT(
      SolverError("solver_mode: \"GPU\""),
      HasSubstr("s.prototxt:1:14: solver_mode needs one of CPU, GPU; the file has '\"GPU\"'"));
}

TEST(PrototxtTest, AWrongKindOfValueSaysWhatTheFieldNeeds) {
  EXPECT_EQ(SolverError("max_iter: many"),
            "s.prototxt:1:11: max_iter needs a whole number; the file has 'many'\n"
            "  max_iter: many\n"
            "            ^");
  EXPECT_THAT(SolverError("max_iter: 1.5"), HasSubstr("1:11: max_iter needs a whole number; the"));
  EXPECT_THAT(SolverError("max_iter: 5000000000"),
              HasSubstr("needs a whole number; the file has '5"));
  EXPECT_THAT(NetError("layer { convolution_param { num_output: -1 } }"),
              HasSubstr("num_output needs a whole number, 0 or more; the file has '-1'"));
  EXPECT_THAT(SolverError("base_lr: 'x'"), HasSubstr("base_lr needs a number; the file has ''x''"));
  EXPECT_THAT(SolverError("net: lenet"), HasSubstr("net needs text in quotes; the file has 'len"));
  EXPECT_THAT(NetError("force_backward: yes"),
              HasSubstr("1:17: force_backward needs true or false; the file has 'yes'"));
  EXPECT_THAT(NetError("layer: 5"), HasSubstr("layer needs fields in braces: layer { ... }"));
}

TEST(PrototxtTest, AMissingBraceNamesWhereItOpened) {
  EXPECT_EQ(NetError("name: 'x'\nlayer {\n  relu_param { negative_slope: 1 }\n"),
            "n.prototxt:2:1: 'layer' is opened here, but never closed: a '}' is missing before "
            "the end of the file\n"
            "  layer {\n"
            "  ^");
  EXPECT_THAT(NetError("layer {\n name: 'a'\nlayer {\n name: 'b'\n}\n"),
              AllOf(StartsWith("n.prototxt:3:1: layer has no field 'layer'."),
                    HasSubstr("Is the '}' of 'layer' missing, opened in line 1?")));
  EXPECT_THAT(NetError("layer {\n relu_param {\n top: 'x'\n}\n"),
              HasSubstr("Is the '}' of 'relu_param' missing, opened in line 2?"));
  EXPECT_THAT(NetError("layer { }\n}"), HasSubstr("2:1: this '}' has no matching '{'"));
}

TEST(PrototxtTest, AFieldGivenTwiceNamesBothPlaces) {
  EXPECT_EQ(
      SolverError("base_lr: 1\nmax_iter: 3\nbase_lr: 2"),
      "s.prototxt:3:1: 'base_lr' is given twice in a solver, first in line 1; it can have only "
      "one value\n"
      "  base_lr: 2\n"
      "  ^");
  EXPECT_THAT(NetError("layer {\n relu_param { }\n relu_param { }\n}"),
              StartsWith("n.prototxt:3:2: 'relu_param' is given twice in layer, first in line 2"));
}

TEST(PrototxtTest, AMissingRequiredFieldNamesItsMessage) {
  EXPECT_EQ(NetError("layer { }\nlayer {\n  clip_param { min: 0 }\n}"),
            "n.prototxt:3:3: clip_param needs a value for 'max', which has no default\n"
            "  clip_param { min: 0 }\n"
            "  ^");
}

TEST(PrototxtTest, AFloatThatIsNotFiniteIsRefusedAtItsLine) {
  EXPECT_EQ(NetError("name: 'n'\nlayer {\n  inner_product_param {\n    weight_filler {\n"
                     "      type: 'gaussian' std: nan\n    }\n  }\n}\n"),
            "n.prototxt:5:24: std is nan; it must be a finite number");
  EXPECT_EQ(NetError("layer { loss_weight: 1\n loss_weight: -inf }"),
            "n.prototxt:2:2: loss_weight is -inf; it must be a finite number");
  EXPECT_EQ(SolverError("net_param {\n layer { param { lr_mult: 1e60 } } }"),
            "s.prototxt:2:18: lr_mult is inf; it must be a finite number");
  EXPECT_EQ(SolverError("max_iter: 1\nclip_gradients: inf"),
            "s.prototxt:2:1: clip_gradients is inf; it must be a finite number");
}

TEST(PrototxtTest, OtherSlipsAreNamed) {
  EXPECT_THAT(NetError("name 'x'"), HasSubstr("1:6: a ':' is missing after 'name'"));
  EXPECT_THAT(NetError("name: 'x\n"), HasSubstr("this text has no closing quote in the same line"));
  EXPECT_THAT(NetError("= 5"), HasSubstr("1:1: expected a field name here, not '='"));
}

// Returns the lines of all errors in a net's text.
std::vector<std::string> NetErrors(const std::string& text) {
  caffe::NetParameter net;
  std::vector<std::string> lines;
  try {
    ParseTextString("n.prototxt", text, &net);
  } catch (const ErrorGroup& group) {
    for (const Error& error : group.all()) lines.emplace_back(error.what());
  }
  return lines;
}

TEST(PrototxtTest, EveryFieldThatIsWrongIsToldInOneRun) {
  EXPECT_THAT(
      NetErrors("layer {\n  nmae: 'a'\n  own_param { x: 1 y { z: [1, 2] } }\n"
                "  pooling_param { pool: AVG stride: 2 }\n}\n"
                "layer {\n  name: 'b' name: 'c'\n  convolution_param { num_output: -1 }\n"
                "  bottom: 'x' text: 'a' 'b' top: 'y'\n}"),
      ElementsAre(StartsWith("n.prototxt:2:3: layer has no field 'nmae'. Did you mean 'name'?"),
                  StartsWith("n.prototxt:3:3: layer has no field 'own_param'"),
                  StartsWith("n.prototxt:4:25: pool has no value 'AVG'. Did you mean 'AVE'?"),
                  StartsWith("n.prototxt:7:13: 'name' is given twice in layer, first in line 7"),
                  StartsWith("n.prototxt:8:35: num_output needs a whole number"),
                  StartsWith("n.prototxt:9:15: layer has no field 'text'.")));
  for (const std::string& line : NetErrors("layer { nmae: 1 }\nlayer { nmae: 1 }")) {
    EXPECT_THAT(line, Not(HasSubstr("\n")));
  }
}

TEST(PrototxtTest, WhatFollowsFromAFieldLeftOutIsNotTold) {
  EXPECT_THAT(NetError("layer { clip_param { min: x max: 1 } }"),
              HasSubstr("min needs a number; the file has 'x'"));
  EXPECT_THAT(NetError("layer {\n relu_param {\n top: 'x'\n name: 'y'\n}\n"),
              EndsWith("opened in line 2?\n  top: 'x'\n  ^"));
}

TEST(PrototxtTest, ProblemsBeyondAnyUseAreNotCounted) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "layer { nmae: 'a' }\n";
  EXPECT_EQ(NetErrors(text).size(), 50u);
}

TEST(PrototxtTest, AFieldOfAForkSaysWhoseItIs) {
  EXPECT_THAT(NetError("layer { multibox_loss_param { num_classes: 21 } }"),
              HasSubstr("layer has no field 'multibox_loss_param'. It belongs to a fork of Caffe "
                        "(SSD) and is not supported here"));
}

TEST(PrototxtTest, AFieldThatEndsAsAnotherIsNoSlip) {
  EXPECT_THAT(NetError("layer { my_pooling_param { pooled_w: 7 } }"),
              Not(HasSubstr("Did you mean")));
  EXPECT_THAT(NetError("layer { poling_param { } }"), HasSubstr("Did you mean 'pooling_param'?"));
}

TEST(PrototxtTest, TheMessageOfALayerIsFoundByItsShortName) {
  for (const auto& [word, message] :
       {std::pair("focal_param", "focal_loss_param"), std::pair("dice_param", "dice_loss_param"),
        std::pair("conv_param", "convolution_param"), std::pair("pool_param", "pooling_param")}) {
    EXPECT_THAT(NetError(Join("layer { ", word, " { } }")),
                HasSubstr(Join("has no field '", word, "'. Did you mean '", message, "'?")));
  }
  EXPECT_THAT(NetError("layer { vocal_param { } }"), Not(HasSubstr("Did you mean")))
      << "not scale_param: most of the common letters are its ending";
}

TEST(PrototxtTest, ALongLineIsCutAroundThePlace) {
  const std::string error =
      NetError("name: '" + std::string(5000, 'x') + "' nam: 1 # " + std::string(5000, 'y'));
  EXPECT_LT(error.size(), 400u);
  EXPECT_THAT(error, HasSubstr("' nam: 1 # yyy"));
  EXPECT_THAT(error, EndsWith("\n  " + std::string(60, ' ') + "^"));
}

TEST(PrototxtTest, ControlBytesOfTheFileDoNotReachTheTerminal) {
  EXPECT_EQ(NetError("name: '\x1b[2J' nam: 1").find('\x1b'), std::string::npos);
}

TEST(PrototxtTest, RefusesWhatIsNotText) {
  EXPECT_THAT(NetError(""), StartsWith("n.prototxt: the file is empty"));
  EXPECT_THAT(NetError(" \n\t\r\n"), StartsWith("n.prototxt: the file is empty"));
  EXPECT_THAT(NetError(std::string("name: 'x'\n\0\1", 12)),
              StartsWith("n.prototxt:2: there is a zero byte: this is a binary file"));
  EXPECT_THAT(NetError(std::string("\x1f\x8b\x08\0\0", 5)),
              StartsWith("n.prototxt: the file is compressed with gzip; uncompress it first"));
  for (const char* bytes : {"\xff", "\xC0\xAF", "\xE4\xB8", "\xED\xA0\x80", "\xF5\x80\x80\x80"}) {
    EXPECT_THAT(NetError(std::string("# a\n# ") + bytes + "\nname: 'x'"),
                StartsWith("n.prototxt:2: there are bytes that are not UTF-8"));
  }
}

TEST(PrototxtTest, RefusesHugeAndDeepFiles) {
  EXPECT_THAT(NetError(std::string((4 << 20) + 1, ' ')), HasSubstr("larger than 4194304 bytes"));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "layer {";
  EXPECT_THAT(NetError(deep), HasSubstr("layer has no field 'layer'"));
  EXPECT_THAT(NetError(std::string(100000, '{')), HasSubstr("expected a field name here"));
  EXPECT_THAT(NetError(std::string(100001, '{')), HasSubstr("there are more than 100000 '{'"));
}

TEST(PrototxtTest, RefusesFilesThatCannotBeRead) {
  const TempFolder folder;
  caffe::SolverParameter solver;
  const auto read = [&](const std::string& path) {
    return Catch([&] { ParseText(path, &solver); });
  };
  const Caught missing = read(folder.path() + "/none.prototxt");
  EXPECT_EQ(missing.code, ErrorCode::kNoInput);
  EXPECT_THAT(missing.text, HasSubstr(folder.path() + "/none.prototxt"));
  EXPECT_EQ(read(folder.path()).code, ErrorCode::kNoInput);
  EXPECT_EQ(read(folder.Write("empty", "")).code, ErrorCode::kConfig);
  EXPECT_EQ(read(folder.Write("binary", std::string("\x0a\0", 2))).code, ErrorCode::kConfig);
  const std::string closed = folder.Write("closed", "max_iter: 1");
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  if (access(closed.c_str(), R_OK) != 0) {  // root reads every file
    EXPECT_EQ(read(closed).code, ErrorCode::kNoPermission);
  }
}

TEST(PrototxtTest, PathsAreTriedAsWrittenAndBesideTheFile) {
  const TempFolder folder;
  const std::string solver = folder.Write("solver.prototxt", "x");
  const std::string net = folder.Write("net.prototxt", "x");
  EXPECT_EQ(ResolvePath(net, solver), net);
  EXPECT_EQ(ResolvePath("net.prototxt", solver), net);
  EXPECT_EQ(ResolvePath("none.prototxt", solver), "none.prototxt");
  EXPECT_EQ(PathsTried("none.prototxt", solver), std::filesystem::current_path().string() +
                                                     "/none.prototxt and " + folder.path() +
                                                     "/none.prototxt");
}

}  // namespace
}  // namespace trainer
