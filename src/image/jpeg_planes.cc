#include "jpeg_planes.h"

#include <algorithm>

#include "ycc.h"

namespace trainer {
namespace {

constexpr int kMostRows = 2 * DCTSIZE;  // of a plane in a row of the picture's blocks

int CeilDiv(int n, int by) { return (n + by - 1) / by; }

int RoundedUp(int n) { return CeilDiv(n, kYccBlock) * kYccBlock; }

}  // namespace

JpegSampling JpegPlanes::SamplingOf(const jpeg_decompress_struct& jpeg) {
  constexpr JDIMENSION kSmoothedWidth = 5;
  if (jpeg.num_components != 3 || jpeg.jpeg_color_space != JCS_YCbCr || jpeg.data_precision != 8 ||
      jpeg.image_width < kSmoothedWidth) {
    return {};
  }
  const jpeg_component_info* const c = jpeg.comp_info;
  for (const int i : {1, 2}) {
    if (c[i].h_samp_factor != 1 || c[i].v_samp_factor != 1) return {};
  }
  const JpegSampling sampling{c[0].h_samp_factor, c[0].v_samp_factor};
  const bool known =
      sampling.across == 1 ? sampling.down == 1 : sampling.across == 2 && sampling.down <= 2;
  const bool blocks =  // else lossless
      c[0].width_in_blocks == (jpeg.image_width + DCTSIZE - 1) / DCTSIZE;
  return known && blocks ? sampling : JpegSampling{};
}

void JpegPlanes::MakeRoom(const jpeg_decompress_struct& jpeg) {
  sampling_ = SamplingOf(jpeg);
  size_t bytes = kYccBlock;
  for (int c = 0; c < 3; ++c) {
    const int across = c == 0 ? 1 : sampling_.across, down = c == 0 ? 1 : sampling_.down;
    Plane& plane = planes_[c];
    plane.height = CeilDiv(static_cast<int>(jpeg.image_height), down);
    plane.width = CeilDiv(static_cast<int>(jpeg.image_width), across);
    plane.rows = DCTSIZE * sampling_.down / down;
    // Whole blocks, also from any column of an area on, and what UpsampleAcross writes beside them.
    // An odd number of blocks: at multiples of 2,048 bytes rows would push each other out of the
    // cache.
    plane.row_bytes = static_cast<size_t>((RoundedUp(plane.width) + 2 * kYccBlock) | kYccBlock);
    plane.first = bytes;
    bytes += plane.row_bytes * static_cast<size_t>(2 * plane.rows);
  }
  if (memory_.size() < bytes) memory_.resize(bytes);
  const auto samples = static_cast<size_t>(RoundedUp(planes_[1].width) + 2 * kYccBlock);
  if (columns_.size() < samples) {
    columns_.resize(samples);
    for (auto& row : upsampled_) row.resize(samples);
  }
}

// Reads the index-th row of blocks of the picture, of the height of the largest ones.
void JpegPlanes::ReadBlocks(jpeg_decompress_struct* jpeg, int index) {
  JSAMPROW rows[3][kMostRows];
  JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
  for (int c = 0; c < 3; ++c) {
    const Plane& plane = planes_[c];
    for (int i = 0; i < plane.rows; ++i) rows[c][i] = Row(plane, index * plane.rows + i);
  }
  jpeg_read_raw_data(jpeg, planes, static_cast<JDIMENSION>(planes_[0].rows));
}

// How many rows of the picture can be made of so many rows of blocks. The last one of smaller
// chroma needs the next row of it.
int JpegPlanes::ReadyRows(int blocks) const {
  const int height = planes_[0].height, read = blocks * planes_[0].rows;
  return read >= height ? height : sampling_.down == 2 ? read - 1 : read;
}

const uint8_t* JpegPlanes::FullRow(int c, int y) {
  const Plane& plane = planes_[c];
  if (c == 0 || sampling_.across == 1) return Row(plane, y);
  uint16_t* const out = upsampled_[c - 1].data();
  if (sampling_.down == 1) {
    UpsampleAcross(Row(plane, y), plane.width, out);
  } else {
    const int near = y / 2, far = y % 2 == 0 ? near - 1 : near + 1;
    UpsampleBoth(Row(plane, near), Row(plane, std::clamp(far, 0, plane.height - 1)), plane.width,
                 columns_.data() + kYccBlock, out);
  }
  return reinterpret_cast<const uint8_t*>(out);
}

void JpegPlanes::Read(jpeg_decompress_struct* jpeg, const Box& area, YccRows* rows) {
  const int end = area.top + area.height;
  int y = area.top;
  for (int blocks = 0; y < end; ++blocks) {
    ReadBlocks(jpeg, blocks);
    for (const int ready = std::min(end, ReadyRows(blocks + 1)); y < ready; ++y) {
      rows->PutYcc(FullRow(0, y) + area.left, FullRow(1, y) + area.left, FullRow(2, y) + area.left);
    }
  }
}

}  // namespace trainer
