#include "conv/pool_window.h"

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kPoolWindowParam[] = "pooling_param";

// A field of pooling_param for a size, which is written as `field` for both axes, or as `field_h`
// and `field_w`.
struct FieldPair {
  const char *field, *field_h, *field_w;
  bool has, has_h, has_w;
  uint32_t value, h, w;

  bool Written() const { return has || has_h || has_w; }
  // Returns the name of a field that is written, for messages; field_w if none is.
  const char* WrittenName() const { return has ? field : has_h ? field_h : field_w; }
};

// Throws kConfig if both forms are written, or only one of field_h and field_w.
void RefuseMixedForms(const LayerSpec& spec, const FieldPair& pair) {
  if (pair.has && (pair.has_h || pair.has_w)) {
    const char* other = pair.has_h ? pair.field_h : pair.field_w;
    spec.FailIn(kPoolWindowParam, other,
                Join(other, " and ", pair.field, " are both given; keep one of them"));
  }
  if (pair.has_h != pair.has_w) {
    const char* given = pair.has_h ? pair.field_h : pair.field_w;
    spec.FailIn(
        kPoolWindowParam, given,
        Join(given, " is given without ", pair.has_h ? pair.field_w : pair.field_h, "; give both"));
  }
}

// Sets h and w from whichever form is written, or the field's default. Throws kConfig for a size
// below `least` or beyond 31 bits.
void ReadWindowSize(const LayerSpec& spec, const FieldPair& pair, int64_t least, int64_t& h,
                    int64_t& w) {
  RefuseMixedForms(spec, pair);
  h = pair.has_h ? pair.h : pair.value;
  w = pair.has_w ? pair.w : pair.value;
  for (const bool vertical : {true, false}) {
    const int64_t size = vertical ? h : w;
    if (size >= least && size <= INT32_MAX) continue;
    const char* at = pair.has_h ? (vertical ? pair.field_h : pair.field_w) : pair.field;
    spec.FailIn(kPoolWindowParam, at,
                Join(at, " is ", size, "; it must be at least ", least, " and below 2^31"));
  }
}

// Returns the kernel's fields.
FieldPair KernelOf(const caffe::PoolingParameter& p) {
  return {"kernel_size",    "kernel_h",      "kernel_w",   p.has_kernel_size(), p.has_kernel_h(),
          p.has_kernel_w(), p.kernel_size(), p.kernel_h(), p.kernel_w()};
}

// Sets the kernel of `desc`; with global_pooling it is the whole image. Throws kConfig unless
// exactly one of a kernel size and global_pooling is given.
void ReadKernel(const LayerSpec& spec, PoolDesc& desc) {
  const caffe::PoolingParameter& param = spec.proto().pooling_param();
  const FieldPair kernel = KernelOf(param);
  if (!param.global_pooling()) {
    if (!kernel.Written()) {
      spec.Fail(
          "kernel_size is not given; write it, or kernel_h and kernel_w, or "
          "global_pooling: true");
    }
    return ReadWindowSize(spec, kernel, 1, desc.kernel_h, desc.kernel_w);
  }
  if (kernel.Written()) {
    spec.FailIn(kPoolWindowParam, kernel.WrittenName(),
                Join(kernel.WrittenName(),
                     " is given, but with global_pooling the window is the whole "
                     "image; remove one of them"));
  }
  desc.kernel_h = desc.in_h;
  desc.kernel_w = desc.in_w;
}

// Returns true if the number of windows is rounded up, the default. Three versions of Caffe have a
// field for this: round_mode, ceil_mode and torch_pooling. Throws kConfig if they contradict each
// other.
bool RoundsUp(const LayerSpec& spec) {
  const caffe::PoolingParameter& p = spec.proto().pooling_param();
  const bool up = p.has_round_mode() ? p.round_mode() == caffe::PoolingParameter::CEIL
                                     : p.ceil_mode() && !p.torch_pooling();
  const auto refuse = [&](const char* field, const char* value, const char* other) {
    spec.FailIn(kPoolWindowParam, field,
                Join(field, ": ", value, " contradicts ", other, "; remove one of them"));
  };
  const char* const ceil_mode = p.ceil_mode() ? "true" : "false";
  if (p.has_ceil_mode() && p.has_round_mode() && p.ceil_mode() != up) {
    refuse("ceil_mode", ceil_mode, up ? "round_mode: CEIL" : "round_mode: FLOOR");
  }
  if (p.has_ceil_mode() && p.ceil_mode() && p.torch_pooling()) {
    refuse("ceil_mode", ceil_mode, "torch_pooling: true");
  }
  return up && !p.torch_pooling();
}

// Throws kConfig for a pad or stride with global_pooling; `pad` and `stride` are the names of the
// fields.
void CheckGlobal(const LayerSpec& spec, const PoolDesc& desc, const char* pad, const char* stride) {
  if (desc.pad_h != 0 || desc.pad_w != 0) {
    spec.FailIn(kPoolWindowParam, pad, "global_pooling does not allow padding; remove the pad");
  }
  if (desc.stride_h != 1 || desc.stride_w != 1) {
    spec.FailIn(kPoolWindowParam, stride,
                "global_pooling has one window, so its stride is 1; remove the "
                "stride");
  }
}

}  // namespace

int64_t PooledSize(int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool ceil, bool clip) {
  const int64_t room = in + 2 * pad - kernel + (ceil ? stride - 1 : 0);
  int64_t out = (room >= 0 ? room / stride : -((-room + stride - 1) / stride)) + 1;
  if (clip && (out - 1) * stride >= in + pad) --out;
  return out;
}

PoolDesc ReadPoolWindows(const LayerSpec& spec, const Shape& input, DType dtype) {
  const caffe::PoolingParameter& p = spec.proto().pooling_param();
  PoolDesc desc;
  desc.batch = input[0];
  desc.channels = input[1];
  desc.in_h = input[2];
  desc.in_w = input[3];
  desc.dtype = dtype;
  ReadKernel(spec, desc);
  const FieldPair pad{"pad",         "pad_h", "pad_w",   p.has_pad(), p.has_pad_h(),
                      p.has_pad_w(), p.pad(), p.pad_h(), p.pad_w()};
  const FieldPair stride{"stride",       "stride_h",       "stride_w",
                         p.has_stride(), p.has_stride_h(), p.has_stride_w(),
                         p.stride(),     p.stride_h(),     p.stride_w()};
  ReadWindowSize(spec, pad, 0, desc.pad_h, desc.pad_w);
  ReadWindowSize(spec, stride, 1, desc.stride_h, desc.stride_w);
  if (p.global_pooling()) CheckGlobal(spec, desc, pad.WrittenName(), stride.WrittenName());
  if (desc.pad_h >= desc.kernel_h || desc.pad_w >= desc.kernel_w) {
    spec.FailIn(
        kPoolWindowParam, pad.WrittenName(),
        Join("a pad of ", desc.pad_h, "x", desc.pad_w, " is not smaller than the kernel of ",
             desc.kernel_h, "x", desc.kernel_w, ": a window could contain padding only"));
  }
  const bool ceil = RoundsUp(spec);
  const bool clip = desc.pad_h > 0 || desc.pad_w > 0;
  desc.out_h = PooledSize(desc.in_h, desc.kernel_h, desc.stride_h, desc.pad_h, ceil, clip);
  desc.out_w = PooledSize(desc.in_w, desc.kernel_w, desc.stride_w, desc.pad_w, ceil, clip);
  if (desc.out_h < 1 || desc.out_w < 1) {
    spec.FailIn(kPoolWindowParam, KernelOf(p).WrittenName(),
                Join("a kernel of ", desc.kernel_h, "x", desc.kernel_w,
                     " does not fit into images of ", desc.in_h, "x", desc.in_w, " with pad ",
                     desc.pad_h, "x", desc.pad_w, "; use a smaller kernel or more pad"));
  }
  return desc;
}

}  // namespace trainer
