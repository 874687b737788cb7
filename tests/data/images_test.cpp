// SPDX-License-Identifier: Apache-2.0
//
// Images and what is made of them, against Pillow's own results (make.py, make_images.py), and
// damaged files.
#include <cstring>
#include <filesystem>
#include <map>

#include "../../plugins/data/bytes.h"
#include "../../plugins/data/images/folders.h"
#include "../../plugins/data/images/resize.h"
#include "data/augment.h"
#include "data/columns.h"
#include "data/order.h"
#include "mutations.h"
#include "readers.h"

namespace orrery {
namespace {

using data::Image;

const char* const kFiles[] = {"cat/grey.png", "cat/palette.png", "cat/rgb.png",  "cat/rgba.png",
                              "dog/grey.jpg", "dog/rgb.JPEG",    "dog/small.png"};

Image decoded(const std::string& path) {
  return data::decode_image(data::Bytes::open(path)->all(), path);
}

void expect_pixels(const Image& image, const std::string& name) {
  const HostTensor expected = load_npy(recorded("decoded/" + name + ".npy"));
  EXPECT_EQ(expected.type.dims, (Dims{image.height, image.width, 3})) << name;
  ASSERT_EQ(expected.bytes->size(), image.rgb.size()) << name;
  EXPECT_EQ(std::memcmp(expected.bytes->data(), image.rgb.data(), image.rgb.size()), 0) << name;
}

TEST(Images, PixelsAreThoseOfPillow) {
  for (const std::string name : kFiles)
    expect_pixels(decoded(recorded("images/" + name)), name.substr(4));
  for (const std::string name : {"cmyk.jpg", "ycck.jpg", "unmarked.jpg", "progressive.jpg"})
    expect_pixels(decoded(recorded("jpegs/" + name)), name);
}

// Those of files/formats that have a result beside them; the others are refused.
std::vector<std::string> formats(bool readable) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(recorded("formats"))) {
    const std::string name = entry.path().filename().string();
    if (!ORRERY_HAS_WEBP && name.ends_with(".webp")) continue;
    if (!ORRERY_HAS_TIFF && name.find(".tif") != name.npos) continue;
    if (std::filesystem::exists(recorded("decoded/" + name + ".npy")) == readable)
      names.push_back(name);
  }
  EXPECT_GT(names.size(), readable ? 10 : 0);
  return names;
}

TEST(Images, PixelsOfOtherFormatsAreTheirs) {
  for (const std::string& name : formats(true))
    expect_pixels(decoded(recorded("formats/" + name)), name);
}

TEST(Images, SquaresAreThoseOfPillow) {
  const DatasetPtr data = image_directory(recorded("images"), 6, ORR_U8);
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(data->samples(), 7);
  const HostTensor expected = load_npy(recorded("squares.npy"));
  for (int64_t i = 0; i < 7; ++i) {
    const auto x = read_one(*data, {i}, 0);
    EXPECT_EQ(std::memcmp(expected.bytes->data() + i * 108, x.data(), 108), 0) << kFiles[i];
    EXPECT_EQ(static_cast<int>(read_one(*data, {i}, 1)[0]), i >= 4);
  }
}

// A directory of images, all of them the same, gone at the end.
class Folders {
 public:
  explicit Folders(const std::vector<std::string>& files) {
    for (const std::string& file : files) add(file);
  }
  ~Folders() { std::filesystem::remove_all(root_); }
  std::string path() const { return root_.string(); }
  void add(const std::string& file) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::filesystem::copy_file(recorded("images/dog/small.png"), root_ / file);
  }
  void add_folder(const std::string& folder) const {
    std::filesystem::create_directories(root_ / folder);
  }
  void link(const std::string& to, const std::string& from) const {
    std::filesystem::create_directory_symlink(root_ / to, root_ / from);
  }
  // The labels of all samples; `warned` gets what is logged.
  std::vector<int> labels(std::string& warned) const {
    testing::internal::CaptureStdout();
    const DatasetPtr data = image_directory(path(), 2, ORR_U8);
    warned = testing::internal::GetCapturedStdout();
    std::vector<int> all;
    for (int64_t i = 0; i < data->samples(); ++i)
      all.push_back(static_cast<int>(read_one(*data, {i}, 1)[0]));
    return all;
  }

 private:
  std::filesystem::path root_ = std::filesystem::temp_directory_path() / "orrery_data_folders";
};

TEST(Images, HiddenAndOtherFilesDoNotCount) {
  const Folders folders({"ant/1.png", "bee/1.png", "bee/2.PNG"});
  std::string warned;
  const std::vector<int> plain{0, 1, 1};
  EXPECT_EQ(folders.labels(warned), plain);
  EXPECT_EQ(warned, "");
  for (const char* hidden : {".ipynb_checkpoints/1.png", "ant/.ipynb_checkpoints/1.png",
                             "bee/._1.png", ".DS_Store", "ant/.DS_Store"})
    folders.add(hidden);
  folders.add_folder(".empty");
  EXPECT_EQ(folders.labels(warned), plain);
  EXPECT_EQ(warned, "");
  folders.add("bee/3.gif");
  folders.add("bee/notes.txt");
  folders.add("top.png");
  EXPECT_EQ(folders.labels(warned), plain);
  const std::string said = ": 3, such as " + folders.path() + "/top.png";
  EXPECT_NE(warned.find(said), warned.npos) << warned;
  EXPECT_EQ(warned.find(said), warned.rfind(said));
}

TEST(Images, AClassWithoutImagesIsRefused) {
  const Folders folders({"ant/1.png", "bee/1.png"});
  const auto expect_named = [&](const char* folder) {
    const std::string why = refusal([&] { image_directory(folders.path(), 2, ORR_U8); });
    EXPECT_EQ(why.find(folders.path() + "/" + folder + ": no images"), 0) << why;
    std::filesystem::remove_all(folders.path() + "/" + folder);
  };
  folders.add_folder("ark");
  expect_named("ark");
  folders.add("asp/1.gif");
  expect_named("asp");
  folders.add("asp/.hidden/1.png");
  expect_named("asp");
  folders.link("ant", "ant/again");
  const std::string why = refusal([&] { image_directory(folders.path(), 2, ORR_U8); });
  EXPECT_EQ(why.find(folders.path() + "/ant/again: it is a link"), 0) << why;
}

// The order that torchvision's make_dataset gives these files.
TEST(Images, NestedFilesAreInTorchvisionsOrder) {
  const std::vector<std::string> order{"ant/2.png",     "ant/b.png",       "ant/a/1.png",
                                       "ant/a-b/0.png", "ant/a.png/c.png", "ant/a/d/1.png",
                                       "ant/z/0.png",   "bee/x/y/1.png"};
  const Folders folders({order.rbegin(), order.rend()});
  const data::ImageFolders found = data::find_images(folders.path());
  std::vector<std::string> paths;
  for (const data::ImageFile& file : found.files) {
    paths.push_back(file.path.substr(folders.path().size() + 1));
    EXPECT_EQ(file.label, paths.back().starts_with("bee")) << file.path;
  }
  EXPECT_EQ(paths, order);
  EXPECT_EQ(found.classes, (std::vector<std::string>{"ant", "bee"}));
  EXPECT_EQ(found.left_out, (std::vector<std::string>{}));
}

TEST(Images, NamesWhatIsWrong) {
  const auto expect = [](const std::string& why, const std::string& path, const char* fragment) {
    EXPECT_NE(why.find(path), std::string::npos) << why;
    EXPECT_NE(why.find(fragment), std::string::npos) << why;
  };
  expect(refusal([] { image_directory("nowhere", 6, ORR_F32); }), "nowhere", "cannot be listed");
  expect(refusal([] { image_directory(recorded("decoded"), 6, ORR_F32); }), "decoded", "no images");
  expect(refusal([] { image_directory(recorded("images"), 0, ORR_F32); }), "size is 0", "");
  const ScratchFile file("damaged.png");
  file.write("an image");
  expect(refusal([&] { decoded(file.path()); }), file.path(),
         "neither PNG, JPEG, WebP, BMP nor TIFF");
  for (const auto& [bytes, format] :
       {std::pair{"", "the file is empty"}, {"GIF89a", "it is GIF"}}) {
    file.write(bytes);
    expect(refusal([&] { decoded(file.path()); }), file.path(), format);
  }
  const auto expect_frame = [&](const char* from, const char* to, const char* why) {
    std::string jpeg = contents(recorded("images/dog/rgb.JPEG"));
    jpeg.replace(jpeg.find(std::string(from, 5)), 5, to, 5);
    file.write(jpeg);
    expect(refusal([&] { decoded(file.path()); }), file.path(), why);
  };
  expect_frame("\xff\xc0\0\x11\x08", "\xff\xc1\0\x11\x0c", "data precision 12");
  expect_frame("\xff\xc0\0\x11\x08", "\xff\xc3\0\x11\x08", "SOF type 0xc3");
  for (const char* name : {"images/cat/rgb.png", "images/dog/rgb.JPEG", "jpegs/cmyk.jpg"})
    for (size_t missing : {10, 30, 300}) {
      const std::string whole = contents(recorded(name));
      file.write(whole.substr(0, whole.size() - missing));
      expect(refusal([&] { decoded(file.path()); }), file.path(), "cannot be read");
    }
  expect(refusal([&] { data::blank_image(1 << 20, 1 << 20, file.path()); }), file.path(),
         "1048576 x");
  expect(refusal([&] { data::square(data::blank_image(1, 1 << 25, ""), 4096, file.path()); }),
         file.path(), "pixels");
}

TEST(Images, NamesWhatOfOtherFormatsIsNotRead) {
  const std::map<std::string, std::string> reasons{{"animated.webp", "is an animation"},
                                                   {"float.tif", "32-bit samples"},
                                                   {"pages.tif", "has several pages"},
                                                   {"sideways.tif", "lies on its side"}};
  for (const std::string& name : formats(false)) {
    const std::string path = recorded("formats/" + name), why = refusal([&] { decoded(path); });
    EXPECT_EQ(why.find(path + ": the "), 0) << why;
    EXPECT_NE(why.find(reasons.at(name)), why.npos) << why;
  }
  const ScratchFile file("cut.bin");
  for (const std::string& name : formats(true)) {
    const std::string whole = contents(recorded("formats/" + name));
    for (const double kept : {0.1, 0.4, 0.7, 0.95}) {
      file.write(whole.substr(0, static_cast<size_t>(static_cast<double>(whole.size()) * kept)));
      const std::string why = refusal([&] { decoded(file.path()); });
      EXPECT_EQ(why.find(file.path() + ": "), 0) << name << " " << kept << ": " << why;
    }
  }
  const auto expect_library = [](const char* path, const char* package) {
    const std::string why = refusal([&] { decoded(recorded(path)); });
    EXPECT_NE(why.find(package), why.npos) << why;
  };
  if (!ORRERY_HAS_WEBP) expect_library("formats/lossy.webp", "libwebp-dev");
  if (!ORRERY_HAS_TIFF) expect_library("formats/rgb.tif", "libtiff-dev");
}

// A small file of an image that is too large to be made.
TEST(Images, SizesThatFilesClaimAreRefused) {
  const ScratchFile file("huge.bmp");
  std::string bmp = contents(recorded("formats/rgb.bmp"));
  bmp.replace(18, 8, std::string("\xff\xff\xff\x7f\xff\xff\xff\x7f", 8));
  file.write(bmp);
  const std::string why = refusal([&] { decoded(file.path()); });
  EXPECT_EQ(why.find(file.path() + ": 2147483647 x 2147483647 pixels"), 0) << why;
}

TEST(Images, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated.png");
  for (const char* name : {"images/cat/palette.png", "images/dog/grey.jpg", "jpegs/cmyk.jpg"})
    expect_mutations_stand(
        contents(recorded(name)), file, 100,
        {std::string(4, '\0'), "\xff\xff\xff\xff", "IHDR", "IDAT", "\xff\xc4", "\xff\xda"},
        [&] { decoded(file.path()); });
  for (const std::string& name : formats(true))
    expect_mutations_stand(contents(recorded("formats/" + name)), file, 50,
                           {std::string(4, '\0'), "\xff\xff\xff\xff", "RIFF", "VP8L", "\x01\x01"},
                           [&] { decoded(file.path()); });
}

// One image [1,height,width] of 1, 2, 3, ...
DatasetPtr counted(int64_t height, int64_t width) {
  HostTensor image = HostTensor::make({ORR_F32, {1, height, width}});
  for (int64_t i = 0; i < height * width; ++i) image.data<float>()[i] = static_cast<float>(i + 1);
  const Column x{{"x", image.type}, image.bytes, 0, image.type.bytes()};
  return std::make_shared<Columns>(std::vector{x}, 1);
}

std::vector<float> changed(const Dataset& data, uint64_t draw) {
  const auto bytes = read_one(data, {0, draw}, 0);
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Every window of the padded image, plain and mirrored, comes up, and nothing else.
TEST(Augment, CropsAndFlipsAreAllWindows) {
  const DatasetPtr data = augment(counted(2, 3), {"x", 2, 1, true, {}, {}});
  const auto pixel = [](int64_t y, int64_t x) {
    return y < 0 || y > 1 || x < 0 || x > 2 ? 0.0f : static_cast<float>(y * 3 + x + 1);
  };
  std::vector<std::vector<float>> windows;
  for (int64_t top = -1; top <= 1; ++top)
    for (int64_t left = -1; left <= 2; ++left) {
      const float a = pixel(top, left), b = pixel(top, left + 1), c = pixel(top + 1, left),
                  d = pixel(top + 1, left + 1);
      windows.push_back({a, b, c, d});
      windows.push_back({b, a, d, c});
    }
  std::vector<bool> seen(windows.size());
  for (uint64_t draw = 0; draw < 2000; ++draw) {
    const auto found = std::find(windows.begin(), windows.end(), changed(*data, draw));
    ASSERT_NE(found, windows.end());
    seen[static_cast<size_t>(found - windows.begin())] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
  EXPECT_EQ(changed(*data, 5), changed(*data, 5));
}

TEST(Augment, Normalises) {
  const DatasetPtr data = augment(counted(1, 2), {"x", 0, 0, false, {0.5}, {0.25}});
  EXPECT_EQ(changed(*data, 1), (std::vector<float>{2, 6}));
}

}  // namespace
}  // namespace orrery
