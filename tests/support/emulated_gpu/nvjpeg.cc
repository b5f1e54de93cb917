// nvJPEG of the emulated machine: libjpeg-turbo by another way of rounding, so that pictures differ
// from those of the host as they do on a GPU.

// clang-format off: jpeglib.h needs what <cstdio> declares.
#include <jpeglib.h>

#include <cstdio>
// clang-format on

#include <csetjmp>
#include <span>

#include "support/emulated_gpu/library.h"
#include "support/emulated_gpu/stream.h"
#include "support/emulated_gpu/tables.h"
#include "trainer/base/text.h"

struct trainer::cuda::nvjpeg::HandleObject {
  int device;
  unsigned flags;
};
struct trainer::cuda::nvjpeg::StateObject {
  trainer::cuda::nvjpeg::Handle handle;
  int pictures = 0, output = 0;  // as initialized
};

namespace emulated_gpu {
namespace {

using trainer::Join;
using trainer::cuda::Nvjpeg;
using trainer::cuda::Stream;
namespace nvjpeg = trainer::cuda::nvjpeg;

template <class T>
Objects<T>& All() {
  static auto* const objects = new Objects<T>;
  return *objects;
}

LibraryCall Begin(const char* name) {
  return LibraryCall(name, nvjpeg::kJpegNotSupported, nvjpeg::kExecutionFailed);
}

struct Picture {
  int channels = 0, height = 0, width = 0;
  std::vector<uint8_t> planes;
};

// libjpeg-turbo with a way out of its errors; warnings are none.
struct Reader {
  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf back;

  static void Fail(j_common_ptr jpeg) {
    std::longjmp(static_cast<Reader*>(jpeg->client_data)->back, 1);
  }
  Reader() {
    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = Fail;
    errors.emit_message = [](j_common_ptr, int) {};
    jpeg.client_data = this;
    jpeg_create_decompress(&jpeg);
  }
  ~Reader() { jpeg_destroy_decompress(&jpeg); }

  int Read(std::span<const unsigned char> file, int output, Picture* picture) {
    if (setjmp(back) != 0) return nvjpeg::kBadJpeg;
    jpeg_mem_src(&jpeg, file.data(), file.size());
    jpeg_read_header(&jpeg, TRUE);
    if (jpeg.progressive_mode || jpeg.arith_code || jpeg.num_components > 3 ||
        jpeg_has_multiple_scans(&jpeg)) {
      return nvjpeg::kJpegNotSupported;
    }
    jpeg.out_color_space = output == nvjpeg::kOutputY ? JCS_GRAYSCALE : JCS_EXT_BGR;
    jpeg.dct_method = JDCT_FLOAT;
    jpeg_start_decompress(&jpeg);
    picture->channels = jpeg.output_components;
    picture->height = static_cast<int>(jpeg.output_height);
    picture->width = static_cast<int>(jpeg.output_width);
    const size_t width = jpeg.output_width, plane = width * jpeg.output_height;
    const auto channels = static_cast<size_t>(picture->channels);
    picture->planes.resize(channels * plane);
    row.resize(channels * width);
    while (jpeg.output_scanline < jpeg.output_height) {
      const size_t y = jpeg.output_scanline;
      JSAMPROW line = row.data();
      jpeg_read_scanlines(&jpeg, &line, 1);
      for (size_t i = 0; i < row.size(); ++i) {
        picture->planes[i % channels * plane + y * width + i / channels] = row[i];
      }
    }
    return nvjpeg::kSuccess;
  }
  std::vector<uint8_t> row;
};

int GetProperty(int type, int* value) {
  *value = type == nvjpeg::kMajor ? 13 : 0;
  return nvjpeg::kSuccess;
}

int CreateEx(int backend, void* device_allocator, void* pinned_allocator, unsigned flags,
             nvjpeg::Handle* handle) {
  const LibraryCall call = Begin("nvjpegCreateEx");
  if (call.status() != 0) return call.status();
  if (device_allocator != nullptr || pinned_allocator != nullptr) {
    return nvjpeg::kInvalidParameter;
  }
  if (backend == nvjpeg::kHardware && !TheOptions().nvjpeg.engine) return nvjpeg::kArchMismatch;
  *handle = All<nvjpeg::HandleObject>().Make();
  **handle = {CurrentDevice(), flags};
  return nvjpeg::kSuccess;
}

int JpegStateCreate(nvjpeg::Handle handle, nvjpeg::State* state) {
  const LibraryCall call = Begin("nvjpegJpegStateCreate");
  if (call.status() != 0) return call.status();
  if (!All<nvjpeg::HandleObject>().Has(handle)) return nvjpeg::kInvalidParameter;
  *state = All<nvjpeg::StateObject>().Make();
  (*state)->handle = handle;
  return nvjpeg::kSuccess;
}

template <class T>
int Destroy(T* object) {
  const LibraryCall call = Begin("nvjpegDestroy");
  if (All<T>().Destroy(object)) return call.status();
  AddProblem("nvjpegDestroy... of what the library did not make, or of what is destroyed");
  return nvjpeg::kInvalidParameter;
}

int DecodeBatchedInitialize(nvjpeg::Handle handle, nvjpeg::State state, int pictures,
                            int most_cpu_threads, int output) {
  const LibraryCall call = Begin("nvjpegDecodeBatchedInitialize");
  if (call.status() != 0) return call.status();
  const bool known = output == nvjpeg::kOutputY || output == nvjpeg::kOutputBgr;
  if (!All<nvjpeg::StateObject>().Has(state) || state->handle != handle || pictures < 1 ||
      most_cpu_threads < 1 || !known) {
    return nvjpeg::kInvalidParameter;
  }
  state->pictures = pictures;
  state->output = output;
  return nvjpeg::kSuccess;
}

// Whether the planes that the caller gives are memory of the GPU for the picture.
bool FitsPlanes(int device, const Picture& picture, const nvjpeg::Image& to) {
  for (int c = 0; c < picture.channels; ++c) {
    if (to.pitch[c] < static_cast<size_t>(picture.width)) {
      AddProblem(Join("nvjpegDecodeBatched: rows of ", to.pitch[c], " bytes for ", picture.width,
                      " pixels"));
      return false;
    }
    const size_t bytes =
        to.pitch[c] * static_cast<size_t>(picture.height - 1) + static_cast<size_t>(picture.width);
    if (!IsOperand(device, to.channel[c], bytes, "a plane of nvjpegDecodeBatched")) return false;
  }
  return true;
}

void Write(const Picture& picture, const nvjpeg::Image& to) {
  const auto width = static_cast<size_t>(picture.width);
  const uint8_t* from = picture.planes.data();
  for (int c = 0; c < picture.channels; ++c) {
    for (int y = 0; y < picture.height; ++y, from += width) {
      std::memcpy(to.channel[c] + static_cast<size_t>(y) * to.pitch[c], from, width);
    }
  }
}

int DecodeBatched(nvjpeg::Handle handle, nvjpeg::State state, const unsigned char* const* data,
                  const size_t* lengths, nvjpeg::Image* to, Stream stream) {
  const LibraryCall call = Begin("nvjpegDecodeBatched");
  if (call.status() != 0) return call.status();
  if (!All<nvjpeg::StateObject>().Has(state) || state->handle != handle || state->pictures == 0) {
    AddProblem("nvjpegDecodeBatched without nvjpegDecodeBatchedInitialize");
    return nvjpeg::kInvalidParameter;
  }
  if (CheckStream(stream, "nvjpegDecodeBatched") != 0 || stream->device != handle->device) {
    return nvjpeg::kExecutionFailed;
  }
  const auto pictures = std::make_shared<std::vector<Picture>>(state->pictures);
  for (int i = 0; i < state->pictures; ++i) {
    Picture& picture = (*pictures)[static_cast<size_t>(i)];
    Reader reader;
    if (const int status = reader.Read({data[i], lengths[i]}, state->output, &picture)) {
      state->pictures = 0;  // it is to be initialized again
      return status;
    }
    if (!FitsPlanes(handle->device, picture, to[i])) return nvjpeg::kInvalidParameter;
  }
  TheCounters().decoded_pictures += state->pictures;
  const std::vector<nvjpeg::Image> places(to, to + state->pictures);
  const int left_out = TheOptions().nvjpeg.leaves_out;
  const auto run = [pictures, places, left_out] {
    for (size_t i = 0; i < places.size(); ++i) {
      if (static_cast<int>(i) != left_out) Write((*pictures)[i], places[i]);
    }
  };
  const int queued = Queue(stream, {.run = run, .devices = 1u << handle->device});
  return queued == 0 ? nvjpeg::kSuccess : nvjpeg::kExecutionFailed;
}

constexpr Nvjpeg kNvjpeg = {
    .GetProperty = GetProperty,
    .CreateEx = CreateEx,
    .Destroy = Destroy<nvjpeg::HandleObject>,
    .JpegStateCreate = JpegStateCreate,
    .JpegStateDestroy = Destroy<nvjpeg::StateObject>,
    .DecodeBatchedInitialize = DecodeBatchedInitialize,
    .DecodeBatched = DecodeBatched,
};

}  // namespace

const Nvjpeg& TheNvjpeg() { return kNvjpeg; }

}  // namespace emulated_gpu
