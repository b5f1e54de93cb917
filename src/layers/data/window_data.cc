#include "data/prefetching_data_layer.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

// Reads random windows of images for R-CNN: see OpenWindowList.
class WindowData final : public PrefetchedImages {
 public:
  WindowData(const LayerSpec& spec, const LayerEnv& env)
      : PrefetchedImages(OpenWindowList(spec, env.reading)) {}
};

const RegisterLayer<WindowData> kWindowData(
    "WindowData",
    {.text = "Random windows of images, taken from a list of boxes, for training R-CNN.\n"
             "source: blocks of '# index', path, channels, height, width, number of windows, and "
             "lines 'class overlap x1 y1 x2 y2'. A batch has background windows (overlap below "
             "bg_threshold, label 0), then a share fg_fraction of foreground windows (overlap at "
             "least fg_threshold). Each box, with context_pad pixels around it, is scaled to "
             "transform_param's crop_size; crop_mode square keeps its proportions; pixels outside "
             "the image are 0. Then mirror, mean_file or mean_value, and the scale of "
             "window_data_param follow.\n"
             "top 0: (batch_size, 3, crop_size, crop_size). top 1: the labels, (batch_size).",
     .param = "window_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 2, .max_out = 2}});

}  // namespace
}  // namespace trainer
