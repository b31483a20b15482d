// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/config_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <stdexcept>

namespace cudaq::qec::realtime {
namespace {

/// A fault of a configuration; the text names the place.
struct config_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string place(const YAML::Mark &mark) {
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1) + ": ";
}

/// Builds the tree from the parser's events. `path_` holds the open lists and maps: a node does not move before it is
/// closed.
class tree_builder : public YAML::EventHandler {
public:
  explicit tree_builder(const config_limits &limits) : limits_(limits) {}
  config_node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark &) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    add(mark, "", anchor, config_node::kind::empty);
  }
  void OnAlias(const YAML::Mark &mark, YAML::anchor_t) override {
    throw config_error(place(mark) + "an alias (*name); write the value out");
  }
  void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                const std::string &value) override {
    add(mark, tag, anchor, config_node::kind::scalar).text = value;
  }
  void OnSequenceStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back(std::move(add(mark, tag, anchor, config_node::kind::list)));
    check_depth(mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back(std::move(add(mark, tag, anchor, config_node::kind::map)));
    check_depth(mark);
  }
  void OnMapEnd() override { close(); }

private:
  config_node &add(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor, config_node::kind what) {
    if (anchor != 0)
      throw config_error(place(mark) + "an anchor (&name); write the value out where it is used");
    if (!tag.empty() && tag != "?" && tag != "!") // what the parser calls plain and quoted scalars
      throw config_error(place(mark) + "the tag " + tag + "; a configuration has no tags");
    if (++nodes_ > limits_.nodes)
      throw config_error(place(mark) + "more than " + std::to_string(limits_.nodes) + " values");
    if (!open_.empty() && open_.back().what == config_node::kind::map && open_.back().items.size() % 2 == 0 &&
        what != config_node::kind::scalar)
      throw config_error(place(mark) + "a key that is no word");
    if (what == config_node::kind::map && !open_.empty() && open_.back().what == config_node::kind::list &&
        open_.back().items.size() == limits_.maps)
      throw config_error(place(mark) + "a list of more than " + std::to_string(limits_.maps) +
                         " maps; a server has at most so many decoders");
    config_node &node = open_.empty() ? root_ : open_.back().items.emplace_back();
    node.what = what;
    node.line = static_cast<std::uint32_t>(mark.line + 1);
    node.column = static_cast<std::uint32_t>(mark.column + 1);
    if (what == config_node::kind::empty && !open_.empty() && open_.back().what == config_node::kind::map) {
      // The parser's place of a missing value is where the next field begins.
      const config_node &key = open_.back().items[open_.back().items.size() - 2];
      node.line = key.line;
      node.column = key.column;
    }
    return node;
  }
  void check_depth(const YAML::Mark &mark) const {
    if (open_.size() > limits_.depth)
      throw config_error(place(mark) + "more than " + std::to_string(limits_.depth) +
                         " lists and maps inside each other");
  }
  void close() {
    config_node node = std::move(open_.back());
    open_.pop_back();
    (open_.empty() ? root_ : open_.back().items.back()) = std::move(node);
  }

  const config_limits &limits_;
  std::size_t nodes_ = 0;
  config_node root_;
  std::vector<config_node> open_;
};

} // namespace

expected<config_node> read_yaml(std::string_view text, const config_limits &limits) {
  if (text.size() > limits.bytes)
    return reason("line 1, column 1: the text has " + std::to_string(text.size()) + " bytes, at most " +
                  std::to_string(limits.bytes) + " are read");
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    tree_builder builder(limits);
    if (!parser.HandleNextDocument(builder))
      return reason("line 1, column 1: the text is empty");
    config_node root = builder.take();
    tree_builder second(limits);
    if (parser.HandleNextDocument(second))
      return reason(place_of(second.take()) + "a second document");
    return root;
  } catch (const config_error &e) {
    return reason(e.what());
  } catch (const YAML::Exception &e) {
    return reason(place(e.mark) + "not YAML: " + e.msg);
  }
}

} // namespace cudaq::qec::realtime
