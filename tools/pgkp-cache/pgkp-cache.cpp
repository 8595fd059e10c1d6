// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Looks into, cleans up and carries the store of prepared kernels.

#include "ToolMain.h"
#include "Verbs.h"

#include "base/Log.h"

#include <cerrno>
#include <functional>
#include <mutex>
#include <sys/stat.h>

using namespace pgkp::rt;

namespace {

/// What is logged while a store is opened; if that fails, the error says it.
class HeldLog {
public:
  HeldLog() {
    setLogSink(
        [](void *user, LogLevel level, std::string_view message) {
          auto *self = static_cast<HeldLog *>(user);
          std::lock_guard lock(self->mutex);
          self->lines.emplace_back(level, message);
        },
        this);
  }
  ~HeldLog() { setLogSink(nullptr, nullptr); }
  HeldLog(const HeldLog &) = delete;

  void release() {
    setLogSink(nullptr, nullptr);
    for (const auto &[level, message] : lines)
      logLine(level, message);
    lines.clear();
  }

private:
  std::mutex mutex;
  std::vector<std::pair<LogLevel, std::string>> lines;
};

/// `create`: a verb that fills the store; the others want one that is there.
Expected<std::unique_ptr<Store>> openStore(const std::string &directory,
                                           bool create) {
  struct stat info;
  if (!create && lstat(directory.c_str(), &info) != 0)
    return makeErrnoError(errno, "no store in '" + directory + "'");
  StoreOptions options;
  options.directory = directory;
  options.noteUses = false;
  HeldLog held;
  auto store = Store::open(options);
  if (store->problem())
    return makeError(store->problem()->code, "no store in '{}': {}", directory,
                     store->problem()->message);
  held.release();
  return store;
}

/// What the command line names. Bad keys are bad usage; one that is not there
/// is not.
Expected<std::vector<Digest>> resolve(Store &store,
                                      const std::vector<std::string> &prefixes,
                                      ExitCode &code) {
  std::vector<Digest> keys;
  for (const std::string &prefix : prefixes) {
    auto key = findKey(store, prefix);
    if (!key) {
      code = key.error().code == Code::invalidArgument ? exitUsage : exitFailed;
      return tl::unexpected<Error>(key.error());
    }
    keys.push_back(*key);
  }
  return keys;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Looks into, cleans up and carries the store of prepared "
               "kernels.\n"
               "Exit status: 0 done, 1 the work failed, 2 bad usage.",
               "pgkp-cache");
  std::string directory, name;
  std::vector<std::string> keys;
  std::vector<Digest> selected; ///< of `keys`
  ExportOptions exported;
  ImportOptions imported;
  double limitMib = -1;
  bool json = false;
  app.add_option("--cache-dir", directory,
                 "Store directory; default: PGKP_CACHE_DIR, "
                 "$XDG_CACHE_HOME/pgkp, ~/.cache/pgkp");
  app.add_flag("--json", json, "One JSON value instead of text");
  app.fallthrough();
  app.require_subcommand(1);

  std::function<Status(Store &)> work;
  Expected<PackContents> pack;
  auto verb = [&](const char *verbName, const char *help,
                  std::function<Status(Store &)> action) {
    CLI::App *sub = app.add_subcommand(verbName, help);
    sub->callback([&work, action] { work = action; });
    return sub;
  };
  auto oneKey = [&](CLI::App *sub) {
    sub->add_option("KEY", keys, "Content key, or the first digits of it")
        ->required()
        ->expected(1);
  };
  verb("ls",
       "One line for each artifact: key, bytes, uses, chip, kernel, class",
       [&](Store &store) { return list(store, json); });
  oneKey(verb("show", "Everything that an artifact's record says",
              [&](Store &store) { return show(store, selected.at(0), json); }));
  verb("stat", "Number and size of the files of each kind, and the limit",
       [&](Store &store) { return printContents(store, json); });
  verb("verify",
       "Read every record of every kind; what does not verify is put into "
       "quarantine, and the exit status is 1",
       [&](Store &store) { return verify(store, json); });
  verb("gc",
       "Remove leftovers and quarantined records, and evict what is worth "
       "least down to the limit",
       [&](Store &store) {
         std::optional<uint64_t> limit;
         if (limitMib >= 0)
           limit = static_cast<uint64_t>(limitMib * (1 << 20));
         return collect(store, limit, json);
       })
      ->add_option("--limit-mib", limitMib,
                   "Evict down to this many MiB; default: PGKP_CACHE_MIB")
      ->check(CLI::Range(0.0, double{1 << 30}));
  oneKey(verb("explain",
              "Why an artifact is or is not there, and which term of its key "
              "differs from the nearest record's",
              [&](Store &store) {
                return printExplanation(store, selected.at(0), json);
              }));

  CLI::App *out =
      verb("export", "Pack artifacts, and a profile, into one signed file",
           [&](Store &store) {
             exported.keys = selected;
             return exportPack(store, exported, json);
           });
  out->add_option("FILE", exported.output, "The pack to write")->required();
  out->add_option("KEY", keys, "Content keys; default: every artifact");
  out->add_option("--key", exported.secretKey,
                  "Ed25519 secret key that signs (PEM; see keygen)")
      ->required();
  out->add_option("--profile", exported.profile, "Profile to pack, too");

  CLI::App *in = verb(
      "import",
      "Check a pack's signature and contents, then put its "
      "artifacts into the store",
      [&](Store &store) { return importPack(store, *pack, imported, json); });
  in->add_option("FILE", imported.input, "The pack to read")->required();
  in->add_option("--key", imported.publicKey,
                 "Ed25519 public key of the only signer to trust (PEM)")
      ->required();
  in->add_option("--profile", imported.profile,
                 "Profile that the pack's is merged into");

  CLI::App *keygen = app.add_subcommand(
      "keygen", "Make a key pair for packs: NAME.pem, NAME.pub.pem");
  keygen->add_option("NAME", name, "Path without suffix")->required();

  if (int code = parseCommandLine(app, argc, argv); code >= 0)
    return code;
  auto finish = [](const Status &status) -> int {
    return status ? exitOk : reportError(status.error());
  };
  if (keygen->parsed())
    return finish(makeKeys(name, json));
  // Before anything is made or written.
  if (in->parsed() && !(pack = readPack(imported)))
    return reportError(pack.error());

  if (directory.empty())
    directory = defaultStoreDirectory();
  if (directory.empty() || directory == "none")
    return reportError("no store directory: give --cache-dir", exitUsage);
  auto store = openStore(directory, in->parsed());
  if (!store)
    return reportError(store.error());
  ExitCode code = exitOk;
  auto found = resolve(**store, keys, code);
  if (!found)
    return reportError(found.error().message, code);
  selected = std::move(*found);
  return finish(work(**store));
}
