#include "data/folder_listing.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace troupe::mp {

namespace {

namespace fs = std::filesystem;

std::string lower_extension(const std::string& name) {
  std::string extension = fs::path(name).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

bool is_readable_format(const std::string& extension) {
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

bool is_foreign_format(const std::string& extension) {
  static const std::set<std::string> foreign{".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
  return foreign.count(extension) != 0;
}

struct Content {
  std::vector<std::string> directories;
  std::vector<std::string> others;
};

/// What a directory holds, sorted.
Result<Content> content_of(const fs::path& path) {
  Content content;
  std::error_code error;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    auto& list = entry->is_directory(unknown) ? content.directories : content.others;
    list.push_back(entry->path().filename().string());
  }
  if (error)
    return bad_input(path.string(), "cannot list: " + error.message(),
                     "check the path, and whether this user may read it");
  std::sort(content.directories.begin(), content.directories.end());
  std::sort(content.others.begin(), content.others.end());
  return content;
}

/// `path` and all directories below it; sorted by their whole paths, as Python sorts os.walk.
Result<std::vector<std::string>> directories_below(const fs::path& path) {
  std::vector<std::string> all{path.string()};
  for (std::size_t i = 0; i < all.size(); ++i) {
    TROUPE_ASSIGN(const Content content, content_of(all[i]));
    for (const auto& name : content.directories) all.push_back((fs::path(all[i]) / name).string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

Result<FolderListing> FolderListing::read(const fs::path& root) {
  TROUPE_ASSIGN(const Content content, content_of(root));
  if (content.directories.empty())
    return bad_input(root.string(), "no directory of a class in it",
                     "put the images of each class into a directory of its own");
  FolderListing listing;
  for (const auto& name : content.directories) {
    listing.classes_.push_back(name);
    TROUPE_TRY(listing.add_class(root / name));
  }
  return listing;
}

Result<void> FolderListing::add_class(const fs::path& path) {
  const auto before = images_.size();
  TROUPE_ASSIGN(const auto directories, directories_below(path));
  for (const auto& directory : directories) TROUPE_TRY(add_directory(directory));
  if (images_.size() == before)
    return bad_input(path.string(), "no JPEG or PNG file of this class",
                     "add some, or take the directory away");
  return {};
}

Result<void> FolderListing::add_directory(const fs::path& path) {
  TROUPE_ASSIGN(const Content content, content_of(path));
  directories_.push_back({path, static_cast<std::int64_t>(classes_.size()) - 1});
  const auto number = static_cast<std::uint32_t>(directories_.size() - 1);
  for (const auto& name : content.others) {
    const std::string extension = lower_extension(name);
    if (is_foreign_format(extension))
      return bad_input((path / name).string(), "only JPEG and PNG images are read",
                       "convert it, or take it away");
    if (is_readable_format(extension)) images_.push_back({number, name});
  }
  return {};
}

fs::path FolderListing::path(std::uint64_t image) const {
  return directories_[images_[image].directory].path / images_[image].name;
}

std::int64_t FolderListing::label(std::uint64_t image) const {
  return directories_[images_[image].directory].label;
}

}  // namespace troupe::mp
