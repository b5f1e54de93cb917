#include "conv/conv_geometry.h"

#include <algorithm>

#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kConvGeometryParam[] = "convolution_param";

using Values = google::protobuf::RepeatedField<uint32_t>;

// A size that is written as `field`, once or once per axis, or as field_h and field_w.
struct SizeField {
  const char *field, *field_h, *field_w;
  const Values& values;
  bool has_h = false, has_w = false;
  uint32_t h = 0, w = 0;
  int64_t standard = -1;  // default if nothing is written; -1: required
  int64_t least = 0;
};

// Throws kConfig because a required size is written in no form.
void RefuseMissing(const LayerSpec& spec, const SizeField& f) {
  spec.Fail(
      Join(f.field, " is not given; write ", f.field, ", or ", f.field_h, " and ", f.field_w));
}

// Throws kConfig if a size is written in two forms, as _h and _w for an input that is not an image,
// as only one of _h and _w (a pad may omit one, which is then 0), or with a number of values that
// is neither 1 nor `axes`.
void CheckForm(const LayerSpec& spec, const SizeField& f, size_t axes) {
  const char* given = f.has_h ? f.field_h : f.field_w;
  const auto n = static_cast<size_t>(f.values.size());
  if ((f.has_h || f.has_w) && n > 0) {
    spec.FailIn(kConvGeometryParam, given,
                Join(given, " and ", f.field, " are both given; keep one of them"));
  }
  if ((f.has_h || f.has_w) && axes != 2) {
    spec.FailIn(kConvGeometryParam, given,
                Join(given, " is for images (2 spatial axes), but this input has ", axes,
                     "; write ", f.field, " once per axis"));
  }
  if (f.has_h != f.has_w && f.least > 0) {
    const char* other = f.has_h ? f.field_w : f.field_h;
    spec.FailIn(kConvGeometryParam, given, Join(given, " is given without ", other, "; give both"));
  }
  if (n > 1 && n != axes) {
    spec.FailIn(kConvGeometryParam, f.field,
                Join(f.field, " is given ", n, " times for ", axes,
                     " spatial axes; give one, or one per axis"),
                0);
  }
}

// Returns a size for each of the `axes` spatial axes, from whichever form is written, else the
// default. Throws kConfig for a size below `least` or beyond 31 bits.
std::vector<int64_t> ReadSizes(const LayerSpec& spec, const SizeField& f, size_t axes) {
  CheckForm(spec, f, axes);
  std::vector<int64_t> sizes;
  if (f.has_h || f.has_w) {
    sizes = {f.h, f.w};
  } else if (!f.values.empty()) {
    for (size_t i = 0; i < axes; ++i) {
      sizes.push_back(f.values[f.values.size() == 1 ? 0 : static_cast<int>(i)]);
    }
  } else {
    if (f.standard < 0) RefuseMissing(spec, f);
    sizes.assign(axes, f.standard);
  }
  for (size_t i = 0; i < axes; ++i) {
    if (sizes[i] >= f.least && sizes[i] <= INT32_MAX) continue;
    const char* at = f.has_h || f.has_w ? (i == 0 ? f.field_h : f.field_w) : f.field;
    spec.FailIn(kConvGeometryParam, at,
                Join(at, " is ", sizes[i], "; it must be at least ", f.least, " and below 2^31"),
                f.values.empty() ? -1 : (f.values.size() == 1 ? 0 : static_cast<int>(i)));
  }
  return sizes;
}

}  // namespace

std::string SizeText(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += Join(text.empty() ? "" : "x", size);
  return text;
}

int64_t ReadNumOutput(const LayerSpec& spec) {
  const auto& param = spec.proto().convolution_param();
  if (!param.has_num_output()) spec.Fail("num_output is not given; give the number of filters");
  if (param.num_output() < 1) {
    spec.FailIn(kConvGeometryParam, "num_output",
                "num_output is 0; give the number of filters, at least 1");
  }
  if (param.num_output() > INT32_MAX) {
    spec.FailIn(kConvGeometryParam, "num_output",
                Join("num_output is ", param.num_output(), "; it must be below 2^31"));
  }
  return param.num_output();
}

void RequireGroup(const LayerSpec& spec, int64_t group, int64_t channels, const char* what) {
  if (group < 1) spec.FailIn(kConvGeometryParam, "group", "group is 0; it must be at least 1");
  if (channels % group != 0) {
    spec.FailIn(kConvGeometryParam, "group",
                Join("group ", group, " does not divide the ", channels, " ", what,
                     "; choose a divisor of ", channels));
  }
}

void RequireFit(const LayerSpec& spec, const ConvDesc& desc) {
  const std::vector<int64_t> out = desc.Out();
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] >= 1) continue;
    const int64_t reach = desc.dilation[i] * (desc.kernel[i] - 1) + 1;
    const char* field = !spec.proto().convolution_param().kernel_size().empty() ? "kernel_size"
                        : i == 0                                                ? "kernel_h"
                                                                                : "kernel_w";
    spec.FailIn(kConvGeometryParam, field,
                Join("a kernel of ", SizeText(desc.kernel), " covers ", reach,
                     " positions, but spatial axis ", i, " of the input has ", desc.in[i],
                     " + 2 * ", desc.pad[i], " of padding; use a smaller kernel or more pad"));
  }
}

Shape ConvGeometry::LayerShape(const Shape& merged) const {
  const auto rest = merged.dims().subspan(1, HasSpatial() ? merged.dims().size() - 1 : 1);
  return input.Replace(axis, input.Rank(), rest);
}

Shape ConvGeometry::WeightShape() const {
  const Shape shape = desc.WeightShape();
  return HasSpatial() ? shape : Shape(shape.dims().first(2));
}

ConvGeometry ReadConvGeometry(const LayerSpec& spec, const Shape& input, DType dtype) {
  const caffe::ConvolutionParameter& param = spec.proto().convolution_param();
  ConvGeometry geometry;
  geometry.input = input;
  geometry.axis = AxisIn(spec, kConvGeometryParam, "axis", param.axis(), input);
  const auto axes = static_cast<size_t>(input.Rank() - geometry.axis - 1);
  ConvDesc& desc = geometry.desc;
  desc.batch = input.Count(0, geometry.axis);
  desc.in_channels = input[geometry.axis];
  desc.group = param.group();
  desc.dtype = dtype;
  desc.in.assign(input.dims().end() - static_cast<std::ptrdiff_t>(axes), input.dims().end());
  desc.kernel =
      ReadSizes(spec,
                {"kernel_size", "kernel_h", "kernel_w", param.kernel_size(), param.has_kernel_h(),
                 param.has_kernel_w(), param.kernel_h(), param.kernel_w(), axes == 0 ? 1 : -1, 1},
                axes);
  desc.stride = ReadSizes(spec,
                          {"stride", "stride_h", "stride_w", param.stride(), param.has_stride_h(),
                           param.has_stride_w(), param.stride_h(), param.stride_w(), 1, 1},
                          axes);
  desc.pad = ReadSizes(spec,
                       {"pad", "pad_h", "pad_w", param.pad(), param.has_pad_h(), param.has_pad_w(),
                        param.pad_h(), param.pad_w(), 0, 0},
                       axes);
  desc.dilation = ReadSizes(
      spec, {"dilation", "dilation", "dilation", param.dilation(), false, false, 0, 0, 1, 1}, axes);
  if (axes == 0) {
    desc.in = desc.kernel = desc.stride = desc.dilation = {1};
    desc.pad = {0};
  }
  RequireGroup(spec, desc.group, desc.in_channels, "input channels");
  return geometry;
}

}  // namespace trainer
