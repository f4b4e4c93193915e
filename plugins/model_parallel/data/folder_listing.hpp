#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "troupe/result.hpp"

namespace troupe::mp {

/// The images below a directory for each class, in the order of torchvision's ImageFolder: classes
/// by name; within a class by directory, then by file name, all compared byte by byte. Links are
/// followed.
class FolderListing {
 public:
  /// Refuses a class without images, and image formats that torchvision would read and Troupe does
  /// not, since leaving them out would silently change the data set. Other files are left out.
  static Result<FolderListing> read(const std::filesystem::path& root);

  std::uint64_t images() const { return images_.size(); }
  const std::vector<std::string>& classes() const { return classes_; }

  std::filesystem::path path(std::uint64_t image) const;
  std::int64_t label(std::uint64_t image) const;

 private:
  struct Directory {
    std::filesystem::path path;
    std::int64_t label = 0;
  };
  struct Image {
    std::uint32_t directory = 0;
    std::string name;
  };

  Result<void> add_class(const std::filesystem::path& path);
  Result<void> add_directory(const std::filesystem::path& path);

  std::vector<std::string> classes_;
  std::vector<Directory> directories_;
  std::vector<Image> images_;
};

}  // namespace troupe::mp
