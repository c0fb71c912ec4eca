#pragma once
// What ran when on which rank, one record a call, for `lepaute emulate --trace`. Python reads it with
// lepaute.simulate.trace.kernels, which puts it in the place of the time that SMPI's own trace cannot name.
//
// The file, little-endian: 8 bytes "LEPKERN1"; two 32-bit integers, the number of names and the bytes of their text;
// the names, each ended by a line feed, filled up with zeros to a multiple of 8 bytes; then the records.
//
// SMPI runs all ranks in one thread of one process, so that nothing here is locked. A record costs some nanoseconds: it
// is put into a buffer that is written when it is full.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace lepaute::simblas {

/// A call of a kernel: its sizes m, n, k; of a name that begins with "MPI_" bytes, peer (rank of the world) and tag.
struct KernelRecord {
    std::int32_t rank;
    std::int32_t kernel; // place in the names
    double start_s;      // simulated
    double duration_s;
    double m;
    double n;
    double k;
};
static_assert(sizeof(KernelRecord) == 48, "the record is read as 48 bytes");
static_assert(std::endian::native == std::endian::little, "the file is little-endian");

class KernelTrace {
public:
    KernelTrace() = default;
    KernelTrace(const KernelTrace&) = delete;
    KernelTrace& operator=(const KernelTrace&) = delete;
    /// Ends the file.
    ~KernelTrace() { flush(); }

    /// Begins the file; false where it cannot be written.
    bool open(const std::string& path, const std::vector<std::string>& names) {
        std::string text;
        for (const std::string& name : names)
            text += name + '\n';
        text.resize((text.size() + 7) / 8 * 8, '\0');
        const std::array<std::uint32_t, 2> counts{static_cast<std::uint32_t>(names.size()),
                                                  static_cast<std::uint32_t>(text.size())};
        file_.open(path, std::ios::binary | std::ios::trunc);
        write("LEPKERN1", 8);
        write(counts.data(), sizeof counts);
        write(text.data(), text.size());
        buffer_.reserve(RECORDS);
        return file_.good();
    }

    /// Adds a call. Those of a rank come in the order of their start.
    void record(int rank, int kernel, double start_s, double duration_s, double m, double n, double k) {
        buffer_.push_back({rank, kernel, start_s, duration_s, m, n, k});
        if (buffer_.size() == RECORDS)
            flush();
    }

private:
    static constexpr std::size_t RECORDS = 1 << 14;

    void write(const void* bytes, std::size_t count) {
        file_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
    }

    void flush() {
        write(buffer_.data(), buffer_.size() * sizeof(KernelRecord));
        buffer_.clear();
    }

    std::ofstream file_;
    std::vector<KernelRecord> buffer_;
};

} // namespace lepaute::simblas
