#include "libshard/hdf5/array_format.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace shardpack::hdf5 {
namespace {

constexpr std::uint64_t kLargestChunk = 1ull
                                        << 30;  // libhdf5 takes memory for a whole one, be it ever so small on disk
constexpr std::uint64_t kLargestImage = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostClasses = 1 << 20;
constexpr std::size_t kLongestClass = 64 << 10;

[[noreturn]] void Refuse(const std::filesystem::path& path, const std::string& reason) {
  throw Error(ErrorCode::kUnsupported, Location{path.native(), {}, {}}, reason);
}

std::string Quoted(const char* name) { return '"' + std::string(name) + '"'; }

herr_t TakeName(hid_t, const char* name, const H5L_info_t*, void* to) {
  constexpr std::size_t kMostNames = 10;
  auto& names = *static_cast<std::vector<std::string>*>(to);
  try {
    names.emplace_back(name);
  } catch (const std::bad_alloc&) {
    return 1;  // nothing may be thrown through C
  }
  return names.size() > kMostNames ? 1 : 0;
}

std::string NamesIn(const File& file) {
  std::vector<std::string> names;
  H5Literate(file.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, TakeName, &names);
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 10); ++i) {
    text += (i == 0 ? "\"" : ", \"") + Escaped(names[i]) + '"';
  }
  if (names.size() > 10) text += ", ...";
  return text.empty() ? "nothing" : text;
}

// Registered with The HDF Group, and met in files of pictures.
std::string FilterName(H5Z_filter_t filter) {
  struct Known {
    H5Z_filter_t id;
    const char* name;
  };
  static constexpr Known kKnown[] = {{H5Z_FILTER_DEFLATE, "gzip"},
                                     {H5Z_FILTER_SZIP, "szip"},
                                     {305, "lzo"},
                                     {307, "bzip2"},
                                     {32000, "lzf"},
                                     {32001, "blosc"},
                                     {32004, "lz4"},
                                     {32008, "bitshuffle"},
                                     {32013, "zfp"},
                                     {32015, "zstd"},
                                     {32026, "blosc2"}};
  for (const Known& known : kKnown) {
    if (known.id == filter) return std::to_string(filter) + " (" + known.name + ')';
  }
  return std::to_string(filter);
}

void CheckFilters(const Properties& properties, const std::filesystem::path& path, const char* name) {
  const int count = Checked(H5Pget_nfilters(properties.get()), path, "look at the filters");
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = Checked(
        H5Pget_filter2(properties.get(), static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config), path,
        "look at a filter");
    if (H5Zfilter_avail(filter) > 0) continue;
    Refuse(path,
           Quoted(name) + " is compressed by HDF5 filter " + FilterName(filter) +
               ", which this libhdf5 lacks: HDF5_PLUGIN_PATH may name a folder that has it, or write the file again "
               "with gzip or without compression");
  }
}

void CheckStorage(const Array& array, const Type& type, const std::filesystem::path& path, const char* name) {
  const Properties properties(Checked(H5Dget_create_plist(array.get()), path, "look at a dataset"));
  if (H5Pget_layout(properties.get()) == H5D_VIRTUAL) {
    Refuse(path, Quoted(name) + " is a virtual dataset: its bytes lie in other files, which is refused");
  }
  if (Checked(H5Pget_external_count(properties.get()), path, "look at a dataset") != 0) {
    Refuse(path, Quoted(name) + " keeps its bytes in other files, which is refused");
  }
  CheckFilters(properties, path, name);
  if (H5Pget_layout(properties.get()) != H5D_CHUNKED) return;
  hsize_t chunk[H5S_MAX_RANK];
  const int rank = Checked(H5Pget_chunk(properties.get(), H5S_MAX_RANK, chunk), path, "look at the chunks");
  std::uint64_t bytes = H5Tget_size(type.get());
  for (int i = 0; i < rank; ++i) {
    if (chunk[i] > kLargestChunk || (bytes *= std::max<hsize_t>(chunk[i], 1)) > kLargestChunk) {
      Refuse(path, Quoted(name) + " has chunks of more than 1 GiB");
    }
  }
}

bool IsChannels(hsize_t count) { return count == 1 || count == 3 || count == 4; }

void PlaceChannels(const OpenArray& images, const std::filesystem::path& path, ArrayFile::Form& form) {
  const std::vector<hsize_t>& shape = images.shape;
  if (IsChannels(shape[3]) && IsChannels(shape[1])) {
    Refuse(path, "the shape " + ShapeText(shape) + " of \"images\" leaves open whether channels come first or last");
  }
  if (!IsChannels(shape[3]) && !IsChannels(shape[1])) {
    Refuse(path, "\"images\" of the shape " + ShapeText(shape) + " have neither 1, 3 nor 4 channels, first or last");
  }
  form.channels_first = IsChannels(shape[1]);
  form.channels = static_cast<std::uint8_t>(form.channels_first ? shape[1] : shape[3]);
}

[[noreturn]] void RefuseImages(const OpenArray& images, const std::filesystem::path& path, const std::string& what) {
  Refuse(path, "\"images\" of the shape " + ShapeText(images.shape) + ' ' + what);
}

void CheckSampleType(const OpenArray& images, const std::filesystem::path& path) {
  switch (H5Tget_class(images.type.get())) {
    case H5T_FLOAT:
      RefuseImages(
          images, path,
          "are floating-point numbers, which no picture can hold: scale them to uint8 (0 to 255) and write the "
          "file again");
    case H5T_INTEGER:
      break;
    default:
      RefuseImages(images, path, "are neither whole numbers nor byte arrays");
  }
  const std::size_t bytes = H5Tget_size(images.type.get());
  if (bytes > 2 || H5Tget_sign(images.type.get()) != H5T_SGN_NONE) {
    RefuseImages(images, path, "are whole numbers other than uint8 and uint16: convert them and write the file again");
  }
}

ArrayFile::Form FormOfFiles(const OpenArray& images, const std::filesystem::path& path) {
  ArrayFile::Form form;
  form.holds_files = true;
  if (H5Tget_class(images.type.get()) == H5T_OPAQUE) {
    form.image_bytes = H5Tget_size(images.type.get());
    if (form.image_bytes == 0 || form.image_bytes > kLargestImage) RefuseImages(images, path, "are of 4 GiB or more");
    return form;
  }
  if (H5Tget_class(images.type.get()) == H5T_STRING) {
    RefuseImages(images, path, "are strings, which end at the first zero byte: store uint8 arrays of variable length");
  }
  if (H5Tget_class(images.type.get()) != H5T_VLEN) {
    RefuseImages(images, path, "are neither pictures nor byte arrays");
  }
  const Type base(Checked(H5Tget_super(images.type.get()), path, "look at a type"));
  if (H5Tget_class(base.get()) != H5T_INTEGER || H5Tget_size(base.get()) != 1) {
    RefuseImages(images, path, "are arrays of something else than bytes");
  }
  return form;
}

}  // namespace

std::string ShapeText(const std::vector<hsize_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + ']';
}

bool Has(const File& file, const char* name) { return H5Lexists(file.get(), name, H5P_DEFAULT) > 0; }

OpenArray OpenNamed(const File& file, const std::filesystem::path& path, const char* name) {
  if (!Has(file, name)) {
    Refuse(path, "has no dataset " + Quoted(name) + " (there is " + NamesIn(file) +
                     "): arrays are read from \"images\" and \"labels\"");
  }
  H5L_info_t link;
  Checked(H5Lget_info(file.get(), name, &link, H5P_DEFAULT), path, "look at a link");
  if (link.type != H5L_TYPE_HARD) {
    Refuse(path, Quoted(name) + (link.type == H5L_TYPE_EXTERNAL ? " is a link into another file, which is refused"
                                                                : " is a soft link, which is not followed"));
  }
  H5O_info_t object;
  Checked(H5Oget_info_by_name(file.get(), name, &object, H5P_DEFAULT), path, "look at an object");
  if (object.type != H5O_TYPE_DATASET) Refuse(path, Quoted(name) + " is not a dataset");
  OpenArray open;
  open.array = Array(Checked(H5Dopen2(file.get(), name, H5P_DEFAULT), path, "open a dataset"));
  open.type = Type(Checked(H5Dget_type(open.array.get()), path, "look at a type"));
  CheckStorage(open.array, open.type, path, name);
  const Space space(Checked(H5Dget_space(open.array.get()), path, "look at a shape"));
  const int rank = Checked(H5Sget_simple_extent_ndims(space.get()), path, "look at a shape");
  open.shape.resize(static_cast<std::size_t>(rank));
  if (rank > 0) Checked(H5Sget_simple_extent_dims(space.get(), open.shape.data(), nullptr), path, "look at a shape");
  return open;
}

ArrayFile::Form FormOfImages(const OpenArray& images, const std::filesystem::path& path) {
  if (images.shape.size() == 1) return FormOfFiles(images, path);
  if (images.shape.size() != 3 && images.shape.size() != 4) {
    RefuseImages(images, path, "are no pictures: [N, height, width], with channels before or behind them");
  }
  CheckSampleType(images, path);
  ArrayFile::Form form;
  form.channels = 1;
  if (images.shape.size() == 4) PlaceChannels(images, path, form);
  const std::size_t rows = form.channels_first ? 2 : 1;
  form.bit_depth = static_cast<std::uint8_t>(8 * H5Tget_size(images.type.get()));
  std::uint64_t bytes = form.channels * (form.bit_depth / 8u);
  for (const std::size_t i : {rows, rows + 1}) {
    if (images.shape[i] == 0) RefuseImages(images, path, "have no pixels");
    if (images.shape[i] > kLargestImage || (bytes *= images.shape[i]) > kLargestImage) {
      RefuseImages(images, path, "are of 4 GiB or more each");
    }
  }
  form.height = static_cast<std::uint32_t>(images.shape[rows]);
  form.width = static_cast<std::uint32_t>(images.shape[rows + 1]);
  form.image_bytes = bytes;
  return form;
}

bool CheckLabels(const OpenArray& labels, std::uint64_t images, const std::filesystem::path& path) {
  const std::vector<hsize_t>& shape = labels.shape;
  const bool is_list = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
  if (!is_list) {
    Refuse(path, "\"labels\" of the shape " + ShapeText(shape) + ": one number an image is read, [N] or [N, 1]");
  }
  if (shape[0] != images) {
    Refuse(path, "has " + std::to_string(images) + " images and " + std::to_string(shape[0]) + " labels");
  }
  const H5T_class_t kind = H5Tget_class(labels.type.get());
  const std::size_t bytes = H5Tget_size(labels.type.get());
  if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || bytes > 8) {
    Refuse(path, "\"labels\" are neither whole nor fractional numbers of 64 bits or less");
  }
  return kind == H5T_FLOAT;
}

std::vector<std::string> ReadStrings(const OpenArray& strings, const std::filesystem::path& path, const char* name) {
  if (strings.shape.size() != 1 || H5Tget_class(strings.type.get()) != H5T_STRING) {
    Refuse(path, Quoted(name) + " is not a list of strings");
  }
  const hsize_t count = strings.shape[0];
  if (count > kMostClasses) Refuse(path, Quoted(name) + " has more than a million names");
  std::vector<std::string> names;
  const bool is_variable = Checked(H5Tis_variable_str(strings.type.get()), path, "look at a type") > 0;
  const std::size_t size = is_variable ? 0 : H5Tget_size(strings.type.get());
  if (size > kLongestClass) Refuse(path, Quoted(name) + " has names of more than 64 KiB");
  // As the file has them, whatever their character set: names are bytes.
  const Type type(Checked(H5Tcopy(strings.type.get()), path, "copy a type"));
  if (is_variable) {
    std::vector<char*> pointers(count, nullptr);
    const Space space(Checked(H5Dget_space(strings.array.get()), path, "look at a shape"));
    Checked(H5Dread(strings.array.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()), path,
            "read the names of classes");
    for (const char* text : pointers) names.emplace_back(text == nullptr ? "" : text);
    H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, pointers.data());
    return names;
  }
  std::vector<char> text(count * size);
  Checked(H5Dread(strings.array.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), path,
          "read the names of classes");
  const bool pads_by_space = H5Tget_strpad(type.get()) == H5T_STR_SPACEPAD;
  for (hsize_t i = 0; i < count; ++i) {
    std::string one(text.data() + i * size, strnlen(text.data() + i * size, size));
    if (pads_by_space) one.erase(one.find_last_not_of(' ') + 1);
    names.push_back(std::move(one));
  }
  return names;
}

}  // namespace shardpack::hdf5
