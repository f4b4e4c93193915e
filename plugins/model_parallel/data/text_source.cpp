#include "data/text_source.hpp"

#include <algorithm>
#include <utility>

#include "data/sample_order.hpp"
#include "data/tensor_tools.hpp"
#include "data/text_pieces.hpp"
#include "data/tokenizer.hpp"

namespace troupe::mp {

namespace {

/// Consecutive tokens: bytes of a mapped file, or 32-bit numbers in memory.
class TokenRun {
 public:
  explicit TokenRun(Blob bytes) : bytes_(std::move(bytes)) {}
  explicit TokenRun(std::vector<std::int32_t> numbers) : numbers_(std::move(numbers)) {}

  std::uint64_t size() const { return std::max<std::uint64_t>(bytes_.size(), numbers_.size()); }

  void copy(std::uint64_t begin, std::uint64_t count, std::int64_t* out) const {
    if (numbers_.empty())
      std::copy_n(reinterpret_cast<const std::uint8_t*>(bytes_.data()) + begin, count, out);
    else
      std::copy_n(numbers_.data() + begin, count, out);
  }

 private:
  Blob bytes_;
  std::vector<std::int32_t> numbers_;
};

/// The windows of all runs, numbered through.
class TokenWindows {
 public:
  TokenWindows(std::uint64_t length, std::uint64_t stride) : length_(length), stride_(stride) {}

  /// A window needs a token more than it has inputs: the last one's target.
  void add(TokenRun run) {
    if (run.size() < length_ + 1) return;
    first_.push_back(windows_);
    windows_ += (run.size() - length_ - 1) / stride_ + 1;
    runs_.push_back(std::move(run));
  }

  /// How often each token is a target.
  std::vector<std::uint64_t> target_counts(std::int64_t vocabulary) const {
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(vocabulary));
    std::vector<std::int64_t> targets(length_);
    for (std::uint64_t window = 0; window < windows_; ++window) {
      copy(window, 1, targets.data());
      for (const std::int64_t token : targets) ++counts[static_cast<std::size_t>(token)];
    }
    return counts;
  }

  std::uint64_t size() const { return windows_; }
  std::uint64_t length() const { return length_; }

  /// The inputs of a window, or with `shift` 1 its targets.
  void copy(std::uint64_t window, std::uint64_t shift, std::int64_t* out) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), window);
    const auto run = static_cast<std::size_t>(after - first_.begin()) - 1;
    runs_[run].copy((window - first_[run]) * stride_ + shift, length_, out);
  }

 private:
  std::uint64_t length_;
  std::uint64_t stride_;
  std::uint64_t windows_ = 0;
  std::vector<TokenRun> runs_;
  std::vector<std::uint64_t> first_;  ///< number of each run's first window
};

class TextSource final : public DataSource {
 public:
  TextSource(TokenWindows windows, std::int64_t vocabulary, SampleOrder order,
             const DataOptions& options)
      : windows_(std::move(windows)),
        vocabulary_(vocabulary),
        order_(std::move(order)),
        options_(options) {}

  std::uint64_t samples() const override { return order_.samples(); }
  std::vector<std::string> fields() const override { return fields_of(options_); }

  DataBounds bounds() const override { return {vocabulary_, vocabulary_}; }

  std::optional<std::vector<std::uint64_t>> target_counts() const override {
    return windows_.target_counts(vocabulary_);
  }

  Result<Batch> batch(std::uint64_t epoch, std::uint64_t index, std::uint32_t batch_size) override {
    TROUPE_ASSIGN(const auto numbers, order_.batch(epoch, index, batch_size));
    Batch batch;
    batch.first_sample = index * batch_size;
    batch.samples = static_cast<std::uint32_t>(numbers.size());
    TROUPE_ASSIGN(batch.fields["inputs"], tokens(numbers, 0));
    if (options_.need_targets) {
      TROUPE_ASSIGN(batch.fields["targets"], tokens(numbers, 1));
    }
    return batch;
  }

 private:
  Result<HostTensor> tokens(const std::vector<std::uint64_t>& numbers, std::uint64_t shift) const {
    TROUPE_ASSIGN(HostTensor tensor,
                  allocate_samples(v1::DTYPE_INT64, numbers.size(),
                                   {static_cast<std::int64_t>(windows_.length())}, options_.where));
    auto* out = reinterpret_cast<std::int64_t*>(tensor.data.mutable_data());
    for (const std::uint64_t number : numbers) {
      windows_.copy(number, shift, out);
      out += windows_.length();
    }
    return tensor;
  }

  TokenWindows windows_;
  std::int64_t vocabulary_;
  SampleOrder order_;
  DataOptions options_;
};

}  // namespace

Result<std::unique_ptr<DataSource>> open_text(const v1::Data& data, const DataOptions& options) {
  const v1::TextData& config = data.text();
  const std::string where = options.where + ".text";
  TROUPE_TRY(check_class_targets(options, where));
  if (config.sequence_length() == 0)
    return bad_input(where + ".sequence_length", "no length", "write the tokens of a sample");
  const bool bytes = config.tokenizer().has_bytes();
  TROUPE_ASSIGN(const auto tokenizer, open_tokenizer(config.tokenizer(), where + ".tokenizer"));
  TROUPE_ASSIGN(const auto pieces, text_pieces(config, !bytes, where));
  TokenWindows windows(config.sequence_length(),
                       config.stride() != 0 ? config.stride() : config.sequence_length());
  for (const auto& piece : pieces) {
    if (bytes) {
      windows.add(TokenRun(piece.bytes));
      continue;
    }
    const std::string_view text(reinterpret_cast<const char*>(piece.bytes.data()),
                                piece.bytes.size());
    TROUPE_ASSIGN(auto numbers, tokenizer->encode(text, piece.where));
    windows.add(TokenRun(std::move(numbers)));
  }
  if (windows.size() == 0)
    return bad_input(where + ".sequence_length",
                     "no part of the text has " +
                         std::to_string(std::uint64_t{config.sequence_length()} + 1) + " tokens",
                     "make it shorter, or the text longer");
  SampleOrder order(windows.size(), data.shuffle(), options.seed);
  return std::unique_ptr<DataSource>(std::make_unique<TextSource>(
      std::move(windows), tokenizer->vocabulary(), std::move(order), options));
}

}  // namespace troupe::mp
