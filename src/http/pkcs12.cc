#include <memory>
#include <string>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>

#include "http/certificate.h"

namespace orrery::http {
namespace {

/// The parts that PKCS12_parse hands out, with an owner.
struct Pkcs12Parts {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  STACK_OF(X509) * chain = nullptr;

  Pkcs12Parts() = default;
  Pkcs12Parts(const Pkcs12Parts&) = delete;
  Pkcs12Parts& operator=(const Pkcs12Parts&) = delete;
  ~Pkcs12Parts() {
    EVP_PKEY_free(key);
    X509_free(certificate);
    sk_X509_pop_free(chain, X509_free);
  }
};

std::string text_of(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return std::string(text, static_cast<std::size_t>(size));
}

}  // namespace

Result<Certificate> read_pkcs12(std::string_view bytes, const std::string& password) {
  using MemoryPtr = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free(bio); })>;
  using Pkcs12Ptr = std::unique_ptr<PKCS12, decltype([](PKCS12* file) { PKCS12_free(file); })>;
  const MemoryPtr in(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
  const Pkcs12Ptr file(in ? d2i_PKCS12_bio(in.get(), nullptr) : nullptr);
  ERR_clear_error();
  if (!file) {
    return Error(ErrorCode::BadRequest,
                 "the certificate's file is no PKCS#12 (.pfx). One in PEM needs its private key in "
                 "a file of its own");
  }
  Pkcs12Parts parts;
  const bool is_open =
      PKCS12_parse(file.get(), password.c_str(), &parts.key, &parts.certificate, &parts.chain) == 1;
  ERR_clear_error();
  if (!is_open || parts.key == nullptr || parts.certificate == nullptr) {
    return Error(ErrorCode::BadRequest,
                 "the certificate's PKCS#12 file cannot be opened: another password, or no private "
                 "key in it");
  }
  const MemoryPtr certificates(BIO_new(BIO_s_mem()));
  const MemoryPtr key(BIO_new(BIO_s_mem()));
  bool is_written =
      certificates && key && PEM_write_bio_X509(certificates.get(), parts.certificate) == 1 &&
      PEM_write_bio_PrivateKey(key.get(), parts.key, nullptr, nullptr, 0, nullptr, nullptr) == 1;
  for (int i = 0; is_written && i < sk_X509_num(parts.chain); ++i) {
    is_written = PEM_write_bio_X509(certificates.get(), sk_X509_value(parts.chain, i)) == 1;
  }
  ERR_clear_error();
  if (!is_written) {
    return Error(ErrorCode::Internal, "the certificate of a PKCS#12 file could not be written");
  }
  return Certificate{text_of(certificates.get()), text_of(key.get())};
}

}  // namespace orrery::http
