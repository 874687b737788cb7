// SPDX-License-Identifier: Apache-2.0
//
// Arrays in files of HDF5, as h5py, Keras and MATLAB 7.3 write them: a sample is read when it is
// asked for. The option `fields` is a list of {name, dataset}, of which the second is the path of
// an array within the file; `as` is "class" where its texts are to be numbers.
#include <algorithm>
#include <orrery/sdk/data.hpp>

#include "../bytes.h"
#include "../rows.h"
#include "numbers.h"
#include "opened_set.h"
#include "texts.h"
#include "trial.h"

namespace data {
namespace {

constexpr size_t kMostListed = 20;

// The arrays of a file, for messages.
std::string arrays_in(hid_t file) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5O_info_t* info, void* to) -> herr_t {
    auto& found = *static_cast<std::vector<std::string>*>(to);
    if (info->type == H5O_TYPE_DATASET) found.emplace_back(name);
    return found.size() > kMostListed;
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, add, &names, H5O_INFO_BASIC);
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostListed); ++i)
    text += (i ? ", " : "") + names[i];
  return names.empty() ? "no arrays" : names.size() > kMostListed ? text + ", ..." : text;
}

// Whether every group on the way to it is there.
bool is_there(hid_t file, const std::string& path) {
  for (size_t at = path.find_first_not_of('/'); at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (H5Lexists(file, path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    at = path.find_first_not_of('/', end);
  }
  return true;
}

HeldFile open_file(const std::string& path, const std::vector<std::string>& datasets) {
  Bytes::open(path);  // whose messages tell what is missing from what is damaged
  try_apart(path, datasets);
  HeldFile file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file) refuse(path, ": it is no file of HDF5, cut short, or being written: ", last_error());
  return file;
}

class Hdf5 : public orr::Dataset {
 public:
  Hdf5(const std::string& path, const orr::DataOptions& options) {
    const Turn turn;
    std::vector<std::string> names, datasets, kinds;
    for (int i = 1;; ++i) {
      const std::string at = "fields." + std::to_string(i) + ".";
      const std::string name = options.text(at + "name", "");
      if (name.empty()) break;
      names.push_back(name);
      datasets.push_back(options.text(at + "dataset", ""));
      kinds.push_back(options.text(at + "as", ""));
    }
    file_ = open_file(path, datasets);
    for (size_t i = 0; i < names.size(); ++i) add(path, names[i], datasets[i], kinds[i]);
    if (arrays_.empty()) refuse(path, ": no fields are asked for; write {x = 'images'}");
  }

  void read(const int64_t* wanted, int64_t n, void* const* to) const override {
    const Turn turn;
    const std::vector<int64_t> order = by_row(wanted, n);
    for (size_t f = 0; f < arrays_.size(); ++f)
      for (const int64_t i : order)
        if (to[f])
          arrays_[f]->read(wanted[i], static_cast<std::byte*>(to[f]) +
                                          static_cast<size_t>(i) * arrays_[f]->bytes());
  }

 private:
  void add(const std::string& path, const std::string& name, const std::string& dataset,
           const std::string& as) {
    if (!is_there(file_.get(), dataset))
      refuse(path, ": there is no array '", dataset, "'; it has ", arrays_in(file_.get()));
    const std::string subject = path + ": array '" + dataset + "'";
    HeldSet set = opened_set(file_.get(), dataset, subject);
    const bool is_class = as == "class";
    if (is_texts(set.get())) {
      if (is_class && !classes.empty())
        refuse(subject, ": another field has classes; one can have them");
      arrays_.push_back(std::make_unique<Texts>(path, set, subject, is_class ? &classes : nullptr));
    } else if (!as.empty()) {
      refuse(subject, ": dtypes = {", name, " = '", as, "'} is for texts, which it has not");
    } else {
      arrays_.push_back(std::make_unique<Numbers>(std::move(set), subject));
    }
    const Array& made = *arrays_.back();
    fields.push_back({name, made.dims(), made.elements()});
    if (arrays_.size() == 1) samples = made.samples();
    if (made.samples() != samples)
      refuse(path, ": array '", dataset, "' has ", made.samples(), " samples, that of '",
             fields[0].name, "' ", samples);
  }

  HeldFile file_;
  std::vector<std::unique_ptr<Array>> arrays_;
};

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  return std::make_unique<Hdf5>(path, options);
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "hdf5", "0.2.0", "Arrays in files of HDF5",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
